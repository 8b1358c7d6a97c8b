#include "planner/search/candidates.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/host_offload.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"

namespace plumb { inline namespace planner {
namespace {

/// The request for layouts of the order's ranks and stages. Throws SpecError if it asks for others.
LayoutRequest request_for(LayoutRequest request, const std::optional<Schedule>& order) {
  if (!order) return request;
  const int ranks = static_cast<int>(order->ranks.size());
  const int chunks = static_cast<int>(order->stages.size()) / ranks;
  if (request.pipeline.value_or(ranks) != ranks || request.chunks.value_or(chunks) != chunks) {
    throw SpecError(fmt::format("schedule {} has {} ranks with {} stages each: leave pp and v away, or give those",
                                order->name, ranks, chunks));
  }
  request.pipeline = ranks;
  request.chunks = chunks;
  request.schedule = chunks > 1 ? "interleaved" : "1f1b";  // of the same stages: the order itself is simulated
  return request;
}

}  // namespace

Candidates::Candidates(Pricing& pricing, const LayoutRequest& request, const std::optional<Schedule>& order)
    : pricing_(pricing),
      order_(order),
      found_(enumerate_layouts(pricing, request_for(request, order))),
      none_exists_(found_.layouts.empty()),
      advisor_(pricing, request),
      work_(pricing) {
  if (order_) {
    std::erase_if(found_.layouts, [&](const Layout& layout) {
      return microbatches_of(pricing_.training(), layout) != order_->microbatches;
    });
  }
  candidates_.reserve(found_.layouts.size());
  for (const Layout& layout : found_.layouts) {
    if (order_)
      candidates_.push_back({.known = Known::kPrivate});
    else
      candidates_.push_back({.time = work_.lower_bound(layout, skeleton(layout).bound)});
  }
}

/// One micro-batch shows the operations of an order unless micro-batches enter at both ends: such schedules show all of
/// theirs with two a rank.
Candidates::Skeleton Candidates::skeleton_of(const Layout& layout) {
  const bool both_ends = catalogue_entry(layout.schedule).both_ends;
  Skeleton skeleton{.schedule = order_of(layout, both_ends ? 2 * layout.pipeline : 1)};
  skeleton.order = stage_order(skeleton.schedule);
  skeleton.bound = bound_order(skeleton.schedule);
  return skeleton;
}

const Candidates::Skeleton& Candidates::skeleton(const Layout& layout) {
  const auto [known, added] = skeletons_.try_emplace({layout.schedule, layout.pipeline, layout.chunks, layout.group});
  if (added) known->second = skeleton_of(layout);
  return known->second;
}

SimTime Candidates::bound_by_stages(const Layout& layout) {
  const Skeleton& known = skeleton(layout);
  const PricedLayout priced = price_layout(pricing_, layout, known.schedule, known.order);
  return step_time_lower_bound({priced.kinds, priced.kind_of_stage}, known.bound,
                               microbatches_of(pricing_.training(), layout));
}

void Candidates::learn_more(std::size_t index) {
  const Layout& layout = found_.layouts[index];
  Candidate& candidate = candidates_[index];
  if (candidate.known == Known::kWork) {
    candidate = {.time = std::max(candidate.time, bound_by_stages(layout)), .known = Known::kStages};
  } else if (candidate.known == Known::kStages) {
    PricedLayout priced = advisor_.price(layout);
    if (const auto shortfall = advisor_.shortfall_of(layout, priced)) return take_out(index, {.shortfall = shortfall});
    Evaluation evaluation = evaluate_sums(pricing_, layout, std::move(priced));
    candidate = {.time = std::max(candidate.time, evaluation.simulation.makespan), .known = Known::kPrivate};
    priced_.emplace(index, std::move(evaluation.priced));
  } else {
    Evaluation evaluation = on_shared_links(index);
    if (const auto shortfall = memory_shortfall(evaluation.simulation.peak_memory_bytes, pricing_.cluster().device,
                                                pricing_.memory_headroom(layout)))
      return take_out(index, {.shortfall = shortfall});
    if (auto reason = host_conflict(evaluation)) return take_out(index, {.of_hosts = std::move(*reason)});
    candidate = {.time = evaluation.simulation.makespan, .known = Known::kShared};
    evaluations_.emplace(index, std::move(evaluation));
  }
}

Evaluation Candidates::on_shared_links(std::size_t index) {
  const Layout& layout = found_.layouts[index];
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
  if (!out.shortfall) return out.of_hosts;
  return fmt::format("{}; {}", to_text(*out.shortfall), advisor_.nearest_change(found_.layouts[index]));
}

void CandidateQueue::push(std::size_t index) {
  const Candidate& candidate = candidates_[index];
  if (candidate.known == Known::kOut) return;
  waiting_.emplace_back(candidate.time, index);
  std::ranges::push_heap(waiting_, std::greater{});
}

std::size_t CandidateQueue::take_first() {
  std::ranges::pop_heap(waiting_, std::greater{});
  const std::size_t first = waiting_.back().second;
  waiting_.pop_back();
  return first;
}

}}  // namespace plumb::planner
