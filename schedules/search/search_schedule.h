#pragma once
// Searches the best order for a question and says how far from the best it can be.
//
//   std::optional<FoundSchedule> found = search_schedule(question);
//   found->time == found->bound.time   // proved: no order within that memory takes less

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "schedules/bounds/lower_bound.h"
#include "schedules/schedule.h"
#include "schedules/search/integer_solver.h"

namespace plumb { inline namespace schedules {

struct FoundSchedule {
  Schedule schedule;      ///< with the frame's name
  std::int64_t time = 0;  ///< of the question's objective, in the unit of its costs
  LowerBound bound;
};

struct SearchEffort {
  double timed_actions = 5e7;        ///< actions timed over all orders; the default takes about a second
  IntegerSolver solver;              ///< asked where the rest leaves a small question open; may be empty
  std::function<bool()> is_stopped;  ///< where it gives true the search ends with the best so far; may be empty
  /// Told the best time so far and the bound whenever the first falls; may be empty.
  std::function<void(std::int64_t time, std::int64_t bound)> progress;
};

/// Returns the best order that is found from the given starts and from all orders of the catalogue that have
/// the question's placement and fit its memory: none of them takes less. Others are list scheduled
/// (listed_chain.h, listed_placement.h). A small question is searched exhaustively (exact_order.h), which
/// then is the bound. The best orders are improved by local search (fit_to_costs.h). What is then left open goes to the
/// effort's solver as an integer program (order_program.h). It ends at the bound. The result depends on the effort, and
/// not on the machine, unless it is stopped or the solver's answer does. Returns nothing if a rank cannot hold one
/// micro-batch on its way.
std::optional<FoundSchedule> search_schedule(const OrderQuestion& question, const SearchEffort& effort = {},
                                             const std::vector<Schedule>& starts = {});

/// Returns the bound of an exhaustive search that found no order below `time`.
LowerBound exhaustive_bound(std::int64_t time);

/// True if a bound is of orders in which micro-batches ascend on every stage. A rank that starts late for another
/// micro-batch's sake has a shorter span, and is none of them; no makespan is shorter elsewhere.
bool is_of_ascending_orders(const LowerBound& bound);

}}  // namespace plumb::schedules
