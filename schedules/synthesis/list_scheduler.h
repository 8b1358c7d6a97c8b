#pragma once
// A greedy list scheduler over any placement. It plays the pipeline's clock, and whenever a rank is free it takes the
// ready action that its rules put first. It looks no further ahead than to the messages that are under way. It takes
// plain data and returns a Schedule; a generator or a search gives the rules.
//
//   OrderQuestion question{.frame = {.name = "mine", .microbatches = 8, .stages = loop_placement(2, 2)},
//                          .ranks = 2,
//                          .costs = equal_costs({.forward = 1, .input_grad = 2}, 2),
//                          .whole_backwards = true};
//   Schedule s = list_schedule(question, {.forward_urgency = {1, 1}, .backward_urgency = {0, 0},
//                                         .max_in_flight = {2, 1}});   // 1F1B

#include <cstdint>
#include <limits>
#include <vector>

#include "schedules/bounds/order_question.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct ListRules {
  /// [stage] Among ready actions the one with the smallest urgency + period * (index of the micro-batch in its lane)
  /// goes first; among equals a backward, then the later stage.
  std::vector<int> forward_urgency;
  std::vector<int> backward_urgency;
  int period = 0;
  /// [stage] forwards ahead of backwards (B or I), as many as a micro-batch has slices or more
  std::vector<int> max_in_flight;

  /// [rank] Where backwards are I and W, a weight gradient, the oldest first, fills a gap if it delays the
  /// next action by no more than this share of it. A gap whose end is not known counts.
  std::vector<double> patience;
};

/// Returns the order that the rules make. The frame's micro-batches fall evenly into its lanes, in order. A
/// forward that only the memory forbids makes way for itself with a W. Throws ScheduleError if the rules
/// deadlock (the memory can do that with several stages a rank, or if it holds no activation).
Schedule list_schedule(const OrderQuestion& question, const ListRules& rules);

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
  bool is_below = false;         ///< its time is below the one that was asked for
  bool is_deadlocked = false;    ///< the rules deadlock
  Schedule schedule;             ///< not whole unless is_below
  std::int64_t time = 0;         ///< of the question's objective
  std::vector<LikeRules> alike;  ///< [rank] rules that list the same
};

/// Returns the same order with its time if that is below `most_time`. It is given up as soon as some rank has
/// waited so long that it cannot be.
ListedOrder list_schedule_below(std::int64_t most_time, const OrderQuestion& question, const ListRules& rules);

}}  // namespace plumb::schedules
