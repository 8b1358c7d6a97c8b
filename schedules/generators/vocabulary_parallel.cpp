#include <algorithm>
#include <string>
#include <string_view>

#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {
namespace {

/// Says how the passes S and T of the output layer's shards are made.
struct VocabularyPasses {
  std::string_view name;
  bool split = false;  ///< S makes the gradient of the layer's input as well, and T that of the weights alone
  /// Intervals between the last stage's forward of a micro-batch and its backward: one for each collective.
  int intervals = 1;
};

/// Times of one micro-batch on a rank.
struct PassTimes {
  SimTime forward{0};   ///< F, with the hop to the next rank
  SimTime backward{0};  ///< B
  SimTime awaited{0};   ///< what the shards do before the gradient goes back: S, and T where it makes that gradient
  SimTime interval{0};  ///< F, B, S and T
};

/// Returns the times of rank 0, which has stage 0 and the shard that is stage p: they stand for all ranks.
PassTimes pass_times(const VocabularyPasses& passes, const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const CostTable costs = chunk_cost_table(2 * p, parameters.costs);
  const auto of = [&costs](Op op, int stage) { return duration_of(costs, {.op = op, .stage = stage}); };
  const SimTime forward = of(Op::kForward, 0), backward = of(Op::kBackward, 0);
  const SimTime shard = of(Op::kForward, p) + of(Op::kBackward, p);
  return {.forward = forward + to_sim_time(costs.default_link.latency),
          .backward = backward,
          .awaited = passes.split ? shard - of(Op::kWeightGrad, p) : shard,
          .interval = forward + backward + shard};
}

/// The place of S and T in the intervals of a rank.
struct OutputPlace {
  bool behind_backward = false;  ///< F, B, S, T; otherwise F, S, T, B
  int late = 0;                  ///< S of micro-batch n stands in interval n + late
  SimTime waits{0};              ///< from the end of the last stage's forward to the start of S, below one interval
};

/// Ranks begin their intervals one forward after each other, and a micro-batch leaves the last stage p forwards after it
/// has entered the first. S takes the first place from then on.
OutputPlace output_place(const PassTimes& times, bool behind_backward, int ranks_behind) {
  const SimTime needed = ranks_behind * times.forward - (behind_backward ? times.backward : SimTime{0});
  const bool is_later = needed > SimTime{0} && times.interval > SimTime{0};
  const int late = is_later ? static_cast<int>((needed - SimTime{1}) / times.interval) + 1 : 0;
  return {.behind_backward = behind_backward, .late = late, .waits = late * times.interval - needed};
}

/// Returns the place behind B, where the last rank has it, if what the gradient waits for ends within the interval
/// there, and otherwise the place that makes it wait less.
OutputPlace best_place(const PassTimes& times, int ranks_behind) {
  const OutputPlace behind = output_place(times, true, ranks_behind);
  const OutputPlace ahead = output_place(times, false, ranks_behind);
  return behind.waits + times.awaited <= times.interval || behind.waits <= ahead.waits ? behind : ahead;
}

/// Returns the actions of rank r. Its n-th interval has F of micro-batch n, B of the micro-batch whose gradient has
/// come back, S of the newest micro-batch that has left the last stage, and T of the one before.
std::vector<Action> rank_actions(const VocabularyPasses& passes, const ScheduleParameters& parameters, int r) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  const OutputPlace output = best_place(pass_times(passes, parameters), p - 1 - r);
  const int in_flight = (p - 1 - r) + passes.intervals;

  std::vector<Action> actions;
  const auto list = [&](Op op, int stage, int microbatch) {
    if (microbatch >= 0 && microbatch < m) actions.push_back(compute_action(op, stage, microbatch));
  };
  for (int n = 0; n < m + std::max(in_flight, output.late + 1); ++n) {
    list(Op::kForward, r, n);
    if (output.behind_backward) list(Op::kBackward, r, n - in_flight);
    list(Op::kForward, p + r, n - output.late);
    if (passes.split) list(Op::kInputGrad, p + r, n - output.late);
    list(passes.split ? Op::kWeightGrad : Op::kBackward, p + r, n - output.late - 1);
    if (!output.behind_backward) list(Op::kBackward, r, n - in_flight);
  }
  return actions;
}

Schedule vocabulary_parallel(const VocabularyPasses& passes, const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  Schedule schedule{
      .name = std::string(passes.name), .microbatches = parameters.microbatches, .stages = loop_placement(p, p)};
  for (int r = 0; r < p; ++r) schedule.stages.push_back({.rank = r, .model_part = p});
  for (int r = 0; r < p; ++r) schedule.ranks.push_back(rank_actions(passes, parameters, r));
  return schedule;
}

}  // namespace

Schedule vocab_1_schedule(const ScheduleParameters& parameters) {
  return vocabulary_parallel({.name = "vocab-1", .split = false, .intervals = 2}, parameters);
}

Schedule vocab_2_schedule(const ScheduleParameters& parameters) {
  return vocabulary_parallel({.name = "vocab-2", .split = true, .intervals = 1}, parameters);
}

}}  // namespace plumb::schedules
