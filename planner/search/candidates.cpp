#include "planner/search/candidates.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/host_offload.h"
#include "planner/search/memory_bound.h"
#include "planner/spec/cluster_sites.h"
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

Candidates::Candidates(Pricing& pricing, const LayoutSpace& space, const std::optional<Schedule>& order,
                       const CandidateOptions& options)
    : pricing_(pricing),
      order_(order),
      options_(options),
      workers_(options.threads),
      tree_(pricing, space_for(space, order), skeletons_),
      held_(pricing),
      advisor_(pricing, space),
      work_(pricing),
      moved_(pricing.training()),
      own_links_(pricing.training()) {
  bound_families();
}

void Candidates::bound_families() {
  const std::vector<Layout>& layouts = tree_.families().layouts;
  conflicts_.add(tree_.families().conflicts);
  families_.resize(layouts.size());
  std::vector<std::vector<Rejection>> conflicts(layouts.size());
  workers_.each(layouts.size(), [&](std::size_t i) {
    Enumeration schedules = tree_.schedules(layouts[i]);
    conflicts[i] = std::move(schedules.conflicts);
    const LeastTimes least = order_ ? LeastTimes{} : bound_of(layouts[i], schedules.layouts);
    families_[i] = {.layout = layouts[i],
                    .place = {static_cast<std::uint32_t>(i), 0, 0},
                    .bound = least.step,
                    .value = options_.objective.bound(layouts[i], least)};
  });
  for (std::vector<Rejection>& found : conflicts) conflicts_.add(std::move(found));
}

/// Returns the bound of the least work of a family's cores, in the schedule that is bounded least.
LeastTimes Candidates::bound_of(const Layout& family, const std::vector<Layout>& schedules) {
  const LayoutChoices& choices = tree_.choices();
  const std::vector<Recompute> recompute = choices.recompute();
  std::optional<MicrobatchWork> work;
  Layout core = family;
  if (!recompute.empty()) core.recompute = recompute.front();  // none rebuilds least
  for (const int zero : choices.zero(family)) {                // an assumed stack depends on it
    core.zero = zero;
    const std::vector<int> rebuilt = choices.recompute_layers(core);  // if only some are, their time is left out
    core.recompute_layers = rebuilt.empty() ? 0 : rebuilt.back();
    for (const bool sequence_parallel : choices.sequence_parallel(family)) {
      core.sequence_parallel = sequence_parallel;
      for (const ContextKind kind : choices.context_kind(family)) {
        core.context_kind = kind;
        const MicrobatchWork of_core = work_.work(core);
        work = least(work.value_or(of_core), of_core);
      }
    }
  }
  std::optional<LeastTimes> bound;
  for (const Layout& ordered : schedules) {
    const LeastTimes least =
        work_.lower_bound(work.value_or(MicrobatchWork{}), ordered, skeletons_.find(ordered)->bound);
    const LeastTimes& before = bound.value_or(least);
    bound = {.step = std::min(before.step, least.step), .busy = std::min(before.busy, least.busy)};
  }
  return bound.value_or(LeastTimes{});
}

Node Candidates::node_of(Level level, std::size_t index) const {
  const auto node = [&](const auto& one) {
    return Node{.value = one.value, .place = one.place, .level = level, .index = index};
  };
  if (level == Level::kCandidate) return node(candidates_[index]);
  return node(level == Level::kCore ? cores_[index] : families_[index]);
}

std::vector<Node> Candidates::take_steps(std::span<const Node> nodes) {
  std::vector<Step> steps(nodes.size());
  workers_.each(nodes.size(), [&](std::size_t i) { steps[i] = step_with(nodes[i]); });
  std::vector<Node> next;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t index = nodes[i].index;
    if (nodes[i].level == Level::kCandidate) {
      ++evaluations_taken_;
      Learned& learned = std::get<Learned>(steps[i]);
      candidates_[index] = std::move(learned.candidate);
      if (learned.evaluation) evaluations_.emplace(index, std::move(*learned.evaluation));
      if (learned.out && learned.out->shortfall) note_miss(index, *learned.out->shortfall);
      if (learned.out)
        out_.emplace(index, std::move(*learned.out));
      else if (candidates_[index].value <= options_.most)
        next.push_back(node_of(Level::kCandidate, index));
      continue;
    }
    const bool is_family = nodes[i].level == Level::kFamily;
    Branch& branch = is_family ? families_[index] : cores_[index];  // which stays where it is
    if (!branch.below) branch.below = add(std::move(std::get<Opened>(steps[i])));
    const IndexRange below = *branch.below;
    for (std::size_t each = below.first; each < below.end; ++each)
      if (is_family || candidates_[each].known != Known::kOut)
        next.push_back(node_of(is_family ? Level::kCore : Level::kCandidate, each));
  }
  return next;
}

void Candidates::note_miss(std::size_t index, const MemoryShortfall& shortfall) {
  const auto lacks = [&](std::size_t of, std::int64_t bytes) { return std::tuple(bytes, candidates_[of].place); };
  if (!nearest_miss_ ||
      lacks(index, shortfall.missing_bytes) < lacks(*nearest_miss_, out_.at(*nearest_miss_).shortfall->missing_bytes))
    nearest_miss_ = index;
}

Candidates::Step Candidates::step_with(const Node& node) {
  if (node.level == Level::kCandidate) return learn_more(candidates_[node.index]);
  const Branch& branch = node.level == Level::kFamily ? families_[node.index] : cores_[node.index];
  if (branch.below) return Opened{};
  return node.level == Level::kFamily ? open_family(branch) : open_core(branch);
}

Candidates::Opened Candidates::open_family(const Branch& family) {
  Enumeration cores = tree_.cores(family.layout);
  Opened opened{.conflicts = std::move(cores.conflicts)};
  std::uint32_t number = 0;
  for (Layout& core : cores.layouts) {
    Branch branch{.layout = std::move(core), .place = family.place, .value = family.value};
    branch.place[1] = number++;
    if (!order_) {
      const int rebuilt = branch.layout.recompute_layers > 0 ? tree_.fewest_rebuilt_layers(branch.layout) : 0;
      const LeastTimes least =
          work_.lower_bound(work_.work(branch.layout, rebuilt), branch.layout, skeletons_.find(branch.layout)->bound);
      branch.bound = least.step;
      branch.value = std::max(branch.value, options_.objective.bound(branch.layout, least));
    }
    if (branch.value <= options_.most) opened.cores.push_back(std::move(branch));
  }
  return opened;
}

Candidates::Opened Candidates::open_core(const Branch& core) {
  std::vector<Offload> offloads = tree_.choices().offload(core.layout);
  if (!options_.complete && !order_)
    std::erase_if(offloads, [&](const Offload& offload) { return cannot_fit(core.layout, offload); });
  if (offloads.empty()) return {.seen = {.cores_too_large = 1}};
  Enumeration layouts = tree_.layouts(core.layout);
  Opened opened{.conflicts = std::move(layouts.conflicts), .seen = {.all = std::ssize(layouts.layouts)}};
  Candidate candidate{.place = core.place, .time = core.bound, .value = core.value};
  StageBounds bounds;
  HeldTooMuch held;
  for (Layout& layout : layouts.layouts) {
    candidate.layout = std::move(layout);
    const bool may_fit = std::ranges::find(offloads, candidate.layout.offload) != offloads.end();
    if (!may_fit || (!options_.complete && !order_ && holds_too_much(candidate.layout, held))) {
      ++opened.seen.too_large;
    } else if (!order_) {
      const Candidate priced = bounded(candidate, Known::kStages, bound_by_stages(candidate.layout, bounds));
      if (priced.value <= options_.most) opened.candidates.push_back(priced);
    } else if (microbatches_of(pricing_.training(), candidate.layout) == order_->microbatches) {
      candidate.known = Known::kPrivate;
      opened.candidates.push_back(candidate);
    }
    ++candidate.place[2];
  }
  return opened;
}

/// Adds what a branch was opened to, and returns where it stands.
IndexRange Candidates::add(Opened opened) {
  conflicts_.add(std::move(opened.conflicts));
  seen_.all += opened.seen.all;
  seen_.too_large += opened.seen.too_large;
  seen_.cores_too_large += opened.seen.cores_too_large;
  const auto append = [](auto& all, auto& more) {
    const IndexRange range{.first = all.size(), .end = all.size() + more.size()};
    std::ranges::move(more, std::back_inserter(all));
    return range;
  };
  if (candidates_.size() + opened.candidates.size() > kMostLayouts)
    throw SpecError(
        fmt::format("more than {} layouts may be the best, too many to look at: fix some keys of --layout, as in "
                    "tp=8,pp=4 or mbs=1",
                    kMostLayouts));
  const IndexRange cores = append(cores_, opened.cores);
  const IndexRange candidates = append(candidates_, opened.candidates);
  return opened.cores.empty() ? candidates : cores;
}

/// True if no layout of the core that offloads as much fits, or each holds as much as peaks are limited to.
bool Candidates::cannot_fit(Layout core, const Offload& offload) {
  core.offload = offload;
  const std::int64_t peak = least_peak_bytes(pricing_, core, *skeletons_.find(core));
  return (peak_limit_ && peak >= *peak_limit_) ||
         memory_shortfall({peak}, largest_device(pricing_.cluster()), pricing_.memory_headroom(core)).has_value();
}

/// True if a layout does not fit, or holds as much as peaks are limited to. The most frugal of its variants is looked at
/// once for all.
bool Candidates::holds_too_much(const Layout& layout, HeldTooMuch& known) {
  const Layout least = most_frugal_variant(layout);
  for (const Layout* variant : {&least, &layout}) {
    auto place = std::ranges::find(known, *variant, &HeldTooMuch::value_type::first);
    if (place == known.end()) place = known.emplace(place, *variant, holds_too_much(*variant));
    if (place->second) return true;
  }
  return false;
}

bool Candidates::holds_too_much(const Layout& layout) {
  try {
    const std::vector<std::int64_t> peaks = held_.of(layout);
    return (peak_limit_ && std::ranges::max(peaks) >= *peak_limit_) ||
           memory_shortfall(peaks, pricing_.cluster(), layout, pricing_.memory_headroom(layout)).has_value();
  } catch (const ScheduleError&) {  // it has no order of so many micro-batches, which a look at it will tell
    return false;
  }
}

/// The group of micro-batches orders the same stages: it changes neither their prices nor the bound, unless activations
/// move.
LeastTimes Candidates::bound_by_stages(const Layout& layout, StageBounds& known_bounds) {
  const Skeleton& skeleton = *skeletons_.find(layout);
  if (layout.offload.activations || skeleton.order.has(Op::kEvict)) return bound_of_stages(layout, skeleton, true);
  Layout any_group = layout;
  any_group.group = 0;
  const auto before = std::ranges::find(known_bounds, any_group, &StageBounds::value_type::first);
  if (before != known_bounds.end()) return before->second;
  const LeastTimes least = bound_of_stages(layout, skeleton, false);
  known_bounds.emplace_back(std::move(any_group), least);
  return least;
}

LeastTimes Candidates::bound_of_stages(const Layout& layout, const Skeleton& skeleton, bool moves) {
  const PricedLayout priced = price_layout(pricing_, layout, skeleton.schedule, skeleton.order);
  const StageTable stages = stage_table(priced);
  const std::int64_t microbatches = microbatches_of(pricing_.training(), layout);
  MoveTimes moving;
  try {
    if (moves) moving = moved_.times(layout, stages, skeleton.bound);
  } catch (const ScheduleError&) {  // the layout has no order, which a look at it will tell
  }
  return {.step = std::max(moving.fullest_channel,
                           step_time_lower_bound(stages, skeleton.bound, microbatches, moving.waits)),
          .busy = busy_lower_bound(stages, skeleton.bound, microbatches)};
}

Candidates::Learned Candidates::learn_more(const Candidate& candidate) {
  Learned learned;
  try {
    learned = learn_step(candidate);
  } catch (const ScheduleError& error) {  // it has no order of so many micro-batches
    learned = {.candidate = candidate, .out = Out{.reason = error.what()}};
  }
  if (learned.out) learned.candidate.known = Known::kOut;
  return learned;
}

Candidates::Learned Candidates::learn_step(const Candidate& candidate) {
  const Layout& layout = candidate.layout;
  if (candidate.known == Known::kStages) {
    const PricedLayout priced = held_.price(layout);
    const std::vector<std::int64_t> peaks = held_.of(layout, priced);
    if (const auto shortfall = memory_shortfall(peaks, pricing_.cluster(), layout, pricing_.memory_headroom(layout))) {
      Learned learned{.candidate = candidate, .out = Out{.shortfall = shortfall}};
      learned.candidate.peak_bytes = std::ranges::max(peaks);
      return learned;
    }
    const TimedStep timed = own_links_.of(layout, priced);
    Candidate learned = bounded(candidate, Known::kPrivate, {.step = timed.makespan, .busy = mean_busy(timed)});
    learned.peak_bytes = std::ranges::max(peaks);
    learned.own_links_value = learned.value;
    return {.candidate = std::move(learned)};
  }
  Learned learned{.candidate = candidate, .evaluation = on_shared_links(layout)};
  const Evaluation& evaluation = *learned.evaluation;
  learned.candidate.peak_bytes = std::ranges::max(evaluation.simulation.peak_memory_bytes);
  if (const auto shortfall = memory_shortfall(evaluation.simulation.peak_memory_bytes, pricing_.cluster(), layout,
                                              pricing_.memory_headroom(layout)))
    return {.candidate = learned.candidate, .out = Out{.shortfall = shortfall}};
  if (auto reason = host_conflict(evaluation))
    return {.candidate = candidate, .out = Out{.reason = std::move(*reason)}};
  learned.candidate.time = evaluation.simulation.makespan;
  learned.candidate.value = options_.objective.value(evaluation);
  learned.evaluation->network.reset();  // it has a link for each device, and thousands of layouts are kept
  if (order_) learned.candidate.own_links_value = learned.candidate.value;
  learned.candidate.known = Known::kShared;
  return learned;
}

/// Returns the candidate with what is known of its step.
Candidate Candidates::bounded(Candidate candidate, Known known, const LeastTimes& least) const {
  candidate.known = known;
  candidate.time = std::max(candidate.time, least.step);
  candidate.value = std::max(candidate.value, options_.objective.bound(candidate.layout, least));
  return candidate;
}

Evaluation Candidates::on_shared_links(const Layout& layout) {
  const EvaluationOptions shared{.simulation = {.record_timeline = false}, .network = NetworkOptions{}};
  if (order_) return evaluate(pricing_, layout, price_layout(pricing_, layout, *order_), *order_, shared);
  return evaluate(pricing_, layout, held_.price(layout), shared);
}

/// Returns why the hosts cannot hold the offloaded state; nothing if they can, or nothing is offloaded.
std::optional<std::string> Candidates::host_conflict(const Evaluation& evaluation) const {
  const Layout& layout = evaluation.layout;
  if (layout.offload == Offload{}) return std::nullopt;
  return host_shortfall(pricing_.cluster(), layout,
                        host_bytes_by_rank(evaluation.costs, host_optimizer_bytes_by_stage(evaluation.priced), layout,
                                           order_ ? *order_ : order_of(pricing_.training(), layout)));
}

std::string Candidates::why_out(std::size_t index) {
  const Out& out = out_.at(index);
  if (!out.shortfall) return out.reason;
  return fmt::format("{}; {}", to_text(*out.shortfall), advisor_.nearest_change(candidates_[index].layout));
}

}}  // namespace plumb::planner
