#pragma once
// A greedy list scheduler over any placement: time runs, and a rank that is free takes the ready action that its rules
// put first. Plain data in, a Schedule out; a generator or a search gives the rules.
//
//   Schedule frame{.name = "mine", .microbatches = 8, .stages = snake_placement(4, 8)};
//   Schedule s = list_schedule(frame, 4, {.forward = 1, .input_grad = 1, .weight_grad = 1}, rules);

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace plumb {

/// What the actions of any stage take, in one unit of the caller's choice.
struct ListCosts {
  std::int64_t forward = 1;
  std::int64_t input_grad = 1;   ///< of the whole backward, where it is not split
  std::int64_t weight_grad = 0;  ///< 0: backwards are whole (B); otherwise split (I, W)
  std::int64_t hop = 0;          ///< latency between different ranks
};

struct ListRules {
  /// [stage] Among ready actions the smallest of urgency + period * (index of the micro-batch in its lane) goes first;
  /// of equals a backward, then the later stage.
  std::vector<int> forward_urgency;
  std::vector<int> backward_urgency;
  int period = 0;
  bool in_order = false;    ///< only the most urgent action of a rank may run, and the rank waits for it
  bool alternates = false;  ///< behind a forward any ready backward goes first, and the other way round

  // Limits count activations from a forward to the last part of its backward.
  std::vector<int> stage_limit;  ///< [stage], 1 or more; forwards wait. With limits by stage alone nothing deadlocks.
  int rank_limit = 0;            ///< over the stages of a rank; 0: none

  /// A weight gradient runs where nothing else can, if the gap lasts at least this share of it (a gap whose end is not
  /// known counts), or where it is what a forward waits for.
  double least_gap_ratio = 0;
};

/// The order that the rules make on `ranks` ranks. `frame` has name, micro-batches and stages; its micro-batches fall
/// evenly into its lanes, in order. Throws ScheduleError if the rules deadlock (rank limits and in_order can).
Schedule list_schedule(const Schedule& frame, int ranks, const ListCosts& costs, const ListRules& rules);

}  // namespace plumb
