#include "planner/search/moved_activations.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/evaluate/host_offload.h"
#include "planner/evaluate/layout_order.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/compute_steps.h"

namespace plumb { inline namespace planner {
namespace {

void count_moves(const std::vector<Action>& actions, MovedCounts& counts) {
  const std::vector<ComputeStep> steps = compute_steps(actions);
  std::set<std::tuple<int, int, int>> coming;  // (stage, micro-batch, slice) that came behind the last compute action
  std::set<std::tuple<int, int, int>> came_before;  // ... behind the one before
  bool counted_last = false;
  std::size_t position = 0;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    came_before = std::exchange(coming, {});
    for (; position < steps[step].first; ++position) {
      const Action& action = actions[position];
      if (takes_away(action.op)) ++counts[{.stage = action.stage}];
      if (brings_back(action.op)) coming.insert({action.stage, action.microbatch, action.part});
    }
    position = steps[step].behind();
    const Action& action = actions[steps[step].first];
    const bool waits = !counted_last && steps[step].count == 1 && step > 0 && steps[step - 1].count == 1 &&
                       action.op != Op::kForward &&
                       came_before.contains({action.stage, action.microbatch, action.part});
    counted_last = waits;
    if (!waits) continue;
    const Action& beside = actions[steps[step - 1].first];
    ++counts[{.returns = true, .stage = action.stage, .back_beside = beside.op, .beside_stage = beside.stage}];
  }
}

MovedCounts moved_in(const Layout& layout, int microbatches) {
  MovedCounts counts;
  for (const std::vector<Action>& actions : with_offload(order_of(layout, microbatches), layout).ranks)
    count_moves(actions, counts);
  return counts;
}

/// Returns the count of a kind; 0 where there is none.
std::int64_t count_of(const MovedCounts& counts, const MovedKind& kind) {
  const auto found = counts.find(kind);
  return found == counts.end() ? 0 : found->second;
}

/// Once all ranks are full, which 3 p micro-batches see to, each period moves about as many. Some move one more in one
/// period than in the next, so that the least of four periods in a row is taken.
MovedCounts moved_at_least(const Layout& layout, int microbatches, int period) {
  constexpr int kPeriods = 4;
  const int filled = period > 0 ? (3 * layout.pipeline + period - 1) / period : 0;
  const int shorter = filled * period + (period > 0 ? microbatches % period : 0);
  if (period == 0 || shorter + kPeriods * period >= microbatches) return moved_in(layout, microbatches);
  std::vector<MovedCounts> by_periods;
  for (int periods = 0; periods <= kPeriods; ++periods)
    by_periods.push_back(moved_in(layout, shorter + periods * period));
  MovedCounts counts = by_periods.front();
  for (auto& [kind, count] : counts) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int periods = 0; periods < kPeriods; ++periods)
      least = std::min(least, count_of(by_periods[periods + 1], kind) - count_of(by_periods[periods], kind));
    count += (microbatches - shorter) / period * std::max<std::int64_t>(least, 0);
  }
  return counts;
}

}  // namespace

const MovedCounts& MovedActivations::of(const Layout& layout) const {
  static const MovedCounts kUnknown;
  if (catalogue_entry(layout.schedule).made_for_costs) return kUnknown;
  const std::int64_t microbatches = microbatches_of(training_, layout);
  return known_.of(
      {layout.schedule, layout.pipeline, layout.chunks, layout.group, microbatches, layout.offload.activations},
      [&] { return moved_at_least(layout, static_cast<int>(microbatches), order_period(training_, layout)); });
}

MoveTimes MovedActivations::times(const Layout& layout, const StageTable& stages, const BoundOrder& order) const {
  const auto lasts = [&](Op op, int stage) {
    return duration_of(stages.kinds, {.op = op, .stage = stages.kind_of_stage[stage]});
  };
  const Op back = layout.offload.activations ? Op::kReload : Op::kLoad;
  MoveTimes times{.waits = std::vector<SimTime>(order.first_stage.size(), SimTime{0})};
  std::vector<SimTime> channel = times.waits;
  for (const auto& [kind, count] : of(layout)) {
    const int rank = order.rank[kind.stage];
    const SimTime moves = lasts(back, kind.stage);  // as long as it takes to go
    if (!kind.returns)
      channel[rank] += count * moves;
    else
      times.waits[rank] += count * std::max(SimTime{0}, moves - lasts(kind.back_beside, kind.beside_stage));
  }
  times.fullest_channel = std::ranges::max(channel);
  return times;
}

}}  // namespace plumb::planner
