#include "schedules/bounds/lower_bound.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/bounds/bound_terms.h"
#include "schedules/bounds/link_bounds.h"
#include "schedules/bounds/memory_bounds.h"
#include "schedules/bounds/rank_bounds.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns the bound by the work of a rank for all lanes together, which nothing else may take time from.
LowerBound busiest_rank_bound(const std::vector<LaneTimes>& lanes, int ranks) {
  std::vector<std::int64_t> work(static_cast<std::size_t>(ranks), 0);
  for (const LaneTimes& lane : lanes) {
    for (std::size_t k = 0; k < lane.stages.size(); ++k) {
      work[lane.ranks[k]] += lane.microbatches * (lane.forward[k] + lane.input_grad[k] + lane.weight_grad[k]);
    }
  }
  const auto busiest = std::ranges::max_element(work);
  const auto rank = busiest - work.begin();
  BoundTerms terms(fmt::format("the work of rank {}", rank));
  terms.add(*busiest, fmt::format("of work on rank {}", rank));
  return std::move(terms).sum();
}

}  // namespace

LowerBound best_bound(const OrderQuestion& question) {
  const std::vector<LaneTimes> lanes = lanes_of(question);
  LowerBound best = busiest_rank_bound(lanes, question.ranks);
  // A rank's first action may be of either lane, so that a span has no start that the bounds of a lane know.
  if (lanes.size() > 1 && question.objective == Objective::kSpan) return best;
  const auto keep = [&best](LowerBound bound) {
    if (bound.time > best.time) best = std::move(bound);
  };
  for (const LaneTimes& lane : lanes) {
    const int positions = static_cast<int>(lane.stages.size());
    if (lane.microbatches == 0) continue;
    for (int first = 0; first < positions; ++first) {
      for (int last = first; last < positions; ++last) {
        if (lane.ranks[last] != lane.ranks[first]) continue;
        keep(rank_work_bound(question, lane, {.first = first, .last = last}));
        keep(drain_bound(question, lane, {.first = first, .last = last}));
        keep(memory_cycle_bound(question, lane, first, last));
      }
    }
    for (int rank = 0; rank < question.ranks; ++rank) keep(memory_time_bound(question, lane, rank));
    for (int k = 0; k + 1 < positions; ++k) {
      keep(link_bound(lane, lane.ranks[k], lane.ranks[k + 1], HopKind::kActivation));
      keep(link_bound(lane, lane.ranks[k + 1], lane.ranks[k], HopKind::kGradient));
    }
  }
  return best;
}

}}  // namespace plumb::schedules
