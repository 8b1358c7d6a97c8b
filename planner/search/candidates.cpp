#include "planner/search/candidates.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/host_offload.h"
#include "planner/search/memory_bound.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {
namespace {

/// The space for layouts of the order's ranks and stages. Throws SpecError if it has no such.
LayoutSpace space_for(LayoutSpace space, const std::optional<Schedule>& order) {
  if (!order) return space;
  const int ranks = static_cast<int>(order->ranks.size());
  const int chunks = static_cast<int>(order->stages.size()) / ranks;
  if (!space.pipeline.holds(ranks) || !space.chunks.holds(chunks)) {
    throw SpecError(fmt::format("schedule {} has {} ranks with {} stages each: leave pp and v away, or give those",
                                order->name, ranks, chunks));
  }
  space.pipeline = {.named = {ranks}};
  space.chunks = {.named = {chunks}};
  space.schedule = {
      .named = {chunks > 1 ? "interleaved" : "1f1b"}};  // of the same stages: the order itself is simulated
  return space;
}

}  // namespace

Candidates::Candidates(Pricing& pricing, const LayoutSpace& space, const std::optional<Schedule>& order, bool complete,
                       Objective objective)
    : pricing_(pricing),
      order_(order),
      tree_(pricing, space_for(space, order), skeletons_),
      advisor_(pricing, space),
      work_(pricing),
      objective_(std::move(objective)),
      complete_(complete) {
  families_.reserve(tree_.families().size());
  for (const Layout& family : tree_.families()) {
    const TreePlace place{static_cast<std::uint32_t>(families_.size()), 0, 0};
    const SimTime bound = order_ ? SimTime{0} : bound_of_family(family);
    families_.push_back({.layout = family, .place = place, .bound = bound, .value = objective_.bound(family, bound)});
  }
}

/// Returns the bound of the least work of its cores, in the schedule that is bounded least.
SimTime Candidates::bound_of_family(const Layout& family) {
  const LayoutChoices& choices = tree_.choices();
  const std::vector<Recompute> recompute = choices.recompute();
  std::optional<MicrobatchWork> work;
  Layout core = family;
  if (!recompute.empty()) core.recompute = recompute.front();  // none rebuilds least
  for (const int zero : choices.zero(family)) {                // an assumed stack depends on it
    core.zero = zero;
    for (const bool sequence_parallel : choices.sequence_parallel(family)) {
      core.sequence_parallel = sequence_parallel;
      for (const ContextKind kind : choices.context_kind(family)) {
        core.context_kind = kind;
        const MicrobatchWork of_core = work_.work(core);
        work = least(work.value_or(of_core), of_core);
      }
    }
  }
  std::optional<SimTime> bound;
  for (const Layout& ordered : tree_.schedules(family)) {
    const SimTime of_schedule =
        work_.lower_bound(work.value_or(MicrobatchWork{}), ordered, skeletons_.find(ordered)->bound);
    bound = std::min(bound.value_or(of_schedule), of_schedule);
  }
  return bound.value_or(SimTime{0});
}

IndexRange Candidates::open_family(std::size_t index) {
  if (families_[index].below) return *families_[index].below;
  const TreePlace place = families_[index].place;
  IndexRange below{.first = cores_.size()};
  for (Layout& core : tree_.cores(families_[index].layout)) {
    Branch branch{.layout = std::move(core), .place = place};
    branch.place[1] = static_cast<std::uint32_t>(cores_.size() - below.first);
    if (!order_)
      branch.bound = work_.lower_bound(work_.work(branch.layout), branch.layout, skeletons_.find(branch.layout)->bound);
    branch.value = std::max(families_[index].value, objective_.bound(branch.layout, branch.bound));
    cores_.push_back(std::move(branch));
  }
  below.end = cores_.size();
  families_[index].below = below;
  return below;
}

IndexRange Candidates::open_core(std::size_t index) {
  if (cores_[index].below) return *cores_[index].below;
  IndexRange below{.first = candidates_.size()};
  Candidate candidate{.place = cores_[index].place, .time = cores_[index].bound, .value = cores_[index].value};
  if (order_) candidate.known = Known::kPrivate;
  const bool too_large = !complete_ && !order_ && cannot_fit(cores_[index].layout);
  if (too_large) ++cores_too_large_;
  for (Layout& layout : too_large ? std::vector<Layout>{} : tree_.layouts(cores_[index].layout)) {
    one_exists_ = true;
    if (order_ && microbatches_of(pricing_.training(), layout) != order_->microbatches) continue;
    candidate.layout = std::move(layout);
    candidate.place[2] = static_cast<std::uint32_t>(candidates_.size() - below.first);
    candidates_.push_back(candidate);
  }
  if (candidates_.size() > kMostLayouts)
    throw SpecError(
        fmt::format("more than {} layouts may be the best, too many to look at: fix some keys of --layout, as in "
                    "tp=8,pp=4 or mbs=1",
                    kMostLayouts));
  below.end = candidates_.size();
  cores_[index].below = below;
  return below;
}

/// Returns true if no layout of the core fits, where all of them keep their state on the device.
bool Candidates::cannot_fit(const Layout& core) {
  if (tree_.choices().offload() != std::vector{Offload{}}) return false;
  return memory_shortfall({least_peak_bytes(pricing_, core, *skeletons_.find(core))}, pricing_.cluster().device,
                          pricing_.memory_headroom(core))
      .has_value();
}

SimTime Candidates::bound_by_stages(const Layout& layout) {
  const Skeleton& known = *skeletons_.find(layout);
  const PricedLayout priced = price_layout(pricing_, layout, known.schedule, known.order);
  return step_time_lower_bound({priced.kinds, priced.kind_of_stage}, known.bound,
                               microbatches_of(pricing_.training(), layout));
}

void Candidates::learn_more(std::size_t index) {
  ++evaluations_taken_;
  try {
    learn_next(index);
  } catch (const ScheduleError& error) {  // it has no order of so many micro-batches
    take_out(index, {.reason = error.what()});
  }
}

void Candidates::learn_next(std::size_t index) {
  Candidate& candidate = candidates_[index];
  const Layout& layout = candidate.layout;
  if (candidate.known == Known::kWork) {
    bound_below(candidate, bound_by_stages(layout));
    candidate.known = Known::kStages;
  } else if (candidate.known == Known::kStages) {
    PricedLayout priced = advisor_.price(layout);
    if (const auto shortfall = advisor_.shortfall_of(layout, priced)) return take_out(index, {.shortfall = shortfall});
    Evaluation evaluation = evaluate_sums(pricing_, layout, std::move(priced));
    bound_below(candidate, evaluation.simulation.makespan);
    candidate.known = Known::kPrivate;
    priced_.emplace(index, std::move(evaluation.priced));
  } else {
    Evaluation evaluation = on_shared_links(index);
    if (const auto shortfall = memory_shortfall(evaluation.simulation.peak_memory_bytes, pricing_.cluster().device,
                                                pricing_.memory_headroom(layout)))
      return take_out(index, {.shortfall = shortfall});
    if (auto reason = host_conflict(evaluation)) return take_out(index, {.reason = std::move(*reason)});
    candidate.time = evaluation.simulation.makespan;
    candidate.value = objective_.value(evaluation);
    candidate.known = Known::kShared;
    evaluations_.emplace(index, std::move(evaluation));
  }
}

/// Notes that the candidate takes that time or longer.
void Candidates::bound_below(Candidate& candidate, SimTime time) const {
  candidate.time = std::max(candidate.time, time);
  candidate.value = std::max(candidate.value, objective_.bound(candidate.layout, candidate.time));
}

Evaluation Candidates::on_shared_links(std::size_t index) {
  const Layout& layout = candidates_[index].layout;
  const EvaluationOptions shared{.simulation = {.record_timeline = false}, .network = NetworkOptions{}};
  if (order_) return evaluate(pricing_, layout, price_layout(pricing_, layout, *order_), *order_, shared);
  return evaluate(pricing_, layout, std::move(priced_.extract(index).mapped()), shared);
}

/// Returns why the hosts cannot hold the offloaded state; nothing if they can, or nothing is offloaded.
std::optional<std::string> Candidates::host_conflict(const Evaluation& evaluation) const {
  const Layout& layout = evaluation.layout;
  if (layout.offload == Offload{}) return std::nullopt;
  return host_shortfall(pricing_.cluster(), layout,
                        host_bytes_by_rank(evaluation.costs, host_optimizer_bytes_by_stage(evaluation.priced), layout,
                                           order_ ? *order_ : order_of(pricing_.training(), layout)));
}

void Candidates::take_out(std::size_t index, Out why) {
  candidates_[index].known = Known::kOut;
  out_.emplace(index, std::move(why));
}

std::string Candidates::why_out(std::size_t index) {
  const Out& out = out_.at(index);
  if (!out.shortfall) return out.reason;
  return fmt::format("{}; {}", to_text(*out.shortfall), advisor_.nearest_change(candidates_[index].layout));
}

}}  // namespace plumb::planner
