#pragma once
// The order of a plan, searched for the plan's own costs and memory.
//
//   PlanQuestion asked = question_of_plan(plan, Objective::kMakespan);
//   SearchedOrder searched = search_order_of(plan);
//   searched.plan.order        // the found order; the plan is as it was where none is quicker

#include <cstdint>
#include <string>

#include "planner/search/plan.h"
#include "schedules/bounds/order_question.h"
#include "schedules/cost_table.h"
#include "schedules/search/search_schedule.h"

namespace plumb { inline namespace planner {

/// The question that a search of orders answers for a plan.
struct PlanQuestion {
  OrderQuestion question;  ///< its memory is what the activations of `start` hold, by rank
  CostTable table;         ///< the prices that the question's costs are taken from
  Schedule start;          ///< the plan's order, as searches know orders
};

/// Backwards stay as the plan's order has them, or are split into I and W.
enum class Backwards : std::uint8_t { kKept, kSplit };

/// Returns the question of the plan's order: its placement, its costs on links of their own, and the memory of its
/// activations. Throws ScheduleError if the order has slices, moves or steps in its middle, which searches do not know.
PlanQuestion question_of_plan(const Plan& plan, Objective objective, Backwards backwards = Backwards::kKept);

struct SearchedOrder {
  Plan plan;                ///< with the found order and its prediction, or as it was where no order is quicker
  bool is_quicker = false;  ///< a quicker order was found
  std::string name_before;  ///< the plan's order as it was
  Seconds step_before{0};   ///< of the plan as it was
  Seconds step{0};          ///< of `plan`
  std::int64_t time = 0;    ///< of the order in `plan`, in picoseconds: its compute on links of their own
  LowerBound bound;         ///< no order within the memory takes less than this
};

/// Searches the shortest makespan for the plan's costs, with backwards as they are and split, and keeps the order whose
/// step is simulated to be the shortest, on the links that ranks share, and that fits the device. Throws as
/// question_of_plan does.
SearchedOrder search_order_of(const Plan& plan, const SearchEffort& effort = {});

}}  // namespace plumb::planner
