#pragma once
// Questions that tests of orders ask.

#include "schedules/bounds/order_question.h"

namespace plumb::test {

/// Returns the question of a schedule's own placement and slices, with memory for `most` activations a rank (0: any
/// number).
inline OrderQuestion question_of(const Schedule& schedule, const OrderCosts& costs, int most = 0,
                                 Objective objective = Objective::kSpan) {
  OrderQuestion question{
      .frame = {.name = schedule.name, .microbatches = schedule.microbatches, .stages = schedule.stages},
      .ranks = static_cast<int>(schedule.ranks.size()),
      .slices = slices_of(schedule),
      .costs = costs,
      .objective = objective};
  question.memory = counted_activations(question, most);
  return question;
}

/// Returns the question of a chain of stages, one a rank.
inline OrderQuestion chain_question(int ranks, int microbatches, const EqualCosts& costs, int most = 0) {
  OrderQuestion question{
      .frame = {.name = "chain", .microbatches = microbatches, .stages = loop_placement(ranks, ranks)},
      .ranks = ranks,
      .costs = equal_costs(costs, ranks)};
  question.memory = counted_activations(question, most);
  return question;
}

}  // namespace plumb::test
