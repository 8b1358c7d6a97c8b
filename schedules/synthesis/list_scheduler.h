#pragma once
// A greedy list scheduler over any placement. It plays the pipeline's clock, and whenever a rank is free it takes the
// ready action that its rules put first. It looks no further ahead than to the messages that are under way. It takes
// plain data and returns a Schedule; a generator or a search gives the rules.
//
//   Schedule frame{.name = "mine", .microbatches = 8, .stages = loop_placement(2, 2)};   // 1F1B:
//   Schedule s = list_schedule(frame, 2, equal_costs({.forward = 1, .input_grad = 2}, 2),
//                              {.forward_urgency = {1, 1}, .backward_urgency = {0, 0}, .max_in_flight = {2, 1}});

#include <cstdint>
#include <limits>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/synthesis/order_costs.h"

namespace plumb { inline namespace schedules {

struct ListRules {
  /// [stage] Among ready actions the one with the smallest urgency + period * (index of the micro-batch in its lane)
  /// goes first; among equals a backward, then the later stage.
  std::vector<int> forward_urgency;
  std::vector<int> backward_urgency;
  int period = 0;
  std::vector<int> max_in_flight;  ///< [stage] forwards ahead of backwards (B or I), 1 or more

  bool whole_backwards = true;  ///< if false, backwards are I and W, and the fields below count

  /// [rank] A weight gradient, the oldest first, fills a gap if it delays the next action by no more than this share of
  /// it. A gap whose end is not known counts.
  std::vector<double> patience;

  /// [rank] A micro-batch holds `activation_bytes` from F on; I frees a part of it and W the rest. A forward that only
  /// this limit forbids makes way for itself with a W.
  std::vector<std::int64_t> max_bytes;
  std::int64_t activation_bytes = 1;
  std::int64_t released_at_input_grad_bytes = 0;
};

/// Returns the order that the rules make on `ranks` ranks. `frame` has name, micro-batches and stages; its
/// micro-batches fall evenly into its lanes, in order. Throws ScheduleError if the rules deadlock (max_bytes can, with
/// several stages a rank, or if it holds no activation).
Schedule list_schedule(const Schedule& frame, int ranks, const OrderCosts& costs, const ListRules& rules);

/// The rules of a rank with one stage that list the same as its own: where those of every rank are such, the order is
/// the same. There may be more.
struct LikeRules {
  int least_in_flight = 1;
  int most_in_flight = std::numeric_limits<int>::max();
  double least_patience = 0;
  double most_patience = std::numeric_limits<double>::infinity();
  bool any_urgency = true;  ///< it does not matter which of F and I goes first
};

struct ListedOrder {
  bool is_below = false;  ///< its span is below the one that was asked for
  Schedule schedule;      ///< not whole unless is_below
  std::int64_t span = 0;  ///< largest time over the ranks from the start of a first action to the end of the last
  std::vector<LikeRules> alike;  ///< [rank] rules that list the same
};

/// Returns the same order with its span if that is below `most_span`. It is given up as soon as some rank has waited so long
/// that it cannot be.
ListedOrder list_schedule_below(std::int64_t most_span, const Schedule& frame, int ranks, const OrderCosts& costs,
                                const ListRules& rules);

}}  // namespace plumb::schedules
