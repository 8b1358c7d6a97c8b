#include "planner/search/searched_order.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/priced_layout.h"
#include "planner/search/evaluate_plan.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/synthesis/local_search.h"

namespace plumb { inline namespace planner {
namespace {

Evaluation own_evaluation(Pricing& pricing, const Plan& plan) {
  return evaluate(
      pricing, plan, std::nullopt,
      {.simulation = {.record_timeline = false}, .network = NetworkOptions{}, .receives = Receives::kEarly});
}

}  // namespace

PlanQuestion question_of_plan(const Plan& plan, Objective objective, Backwards backwards) {
  Pricing pricing(plan.model, plan.cluster, plan.training);
  const Schedule order = order_of(plan);
  PlanQuestion asked{.question = placed_question(order, objective)};
  OrderQuestion& question = asked.question;
  if (backwards == Backwards::kSplit) question.whole_backwards = false;
  asked.start = searchable_order(order, question);
  asked.table = cost_table(price_layout(pricing, plan.layout, asked.start));
  question.costs = order_costs(asked.table, order.stages, question.whole_backwards);
  asked.start = searchable_order(order, question);  // with the pairs that its costs gain by
  for (const StageCosts& stage : asked.table.stages) {
    const std::int64_t bytes = stage.memory.forward_bytes;
    question.memory.activation_bytes.push_back(bytes);
    question.memory.released_at_input_grad_bytes.push_back(std::min(bytes, stage.memory.released_at_input_grad_bytes));
  }
  for (const std::vector<Action>& actions : asked.start.ranks) {
    question.memory.max_bytes.push_back(peak_bytes(question.memory, actions));
  }
  return asked;
}

SearchedOrder search_order_of(const Plan& plan, const SearchEffort& effort) {
  Pricing pricing(plan.model, plan.cluster, plan.training);
  const Evaluation own = own_evaluation(pricing, plan);
  const PlanQuestion kept = question_of_plan(plan, Objective::kMakespan);
  SearchedOrder best{.plan = plan,
                     .name_before = plan.layout.schedule,
                     .step_before = to_seconds(own.simulation.makespan),
                     .step = to_seconds(own.simulation.makespan),
                     .time = order_time(kept.start, kept.question),
                     .bound = best_bound(kept.question)};
  std::vector<PlanQuestion> questions{kept};
  if (kept.question.whole_backwards) {
    questions.push_back(question_of_plan(plan, Objective::kMakespan, Backwards::kSplit));
  }
  for (const PlanQuestion& asked : questions) {
    const std::optional<FoundSchedule> found = search_schedule(asked.question, effort, {asked.start});
    if (!found) continue;
    Plan searched = plan;
    searched.order = found->schedule;
    searched.order->name = fmt::format("{}-searched", plan.layout.schedule);
    const Evaluation evaluation = own_evaluation(pricing, searched);
    const Seconds step = to_seconds(evaluation.simulation.makespan);
    if (!evaluation.infeasible.empty() || step >= best.step) continue;
    best = {.plan = plan_of(pricing, evaluation, searched.order),
            .is_quicker = true,
            .name_before = best.name_before,
            .step_before = best.step_before,
            .step = step,
            .time = found->time,
            .bound = found->bound};
  }
  return best;
}

}}  // namespace plumb::planner
