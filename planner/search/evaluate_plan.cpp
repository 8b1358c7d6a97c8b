#include "planner/search/evaluate_plan.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/handovers.h"
#include "planner/evaluate/host_offload.h"
#include "planner/search/bounds.h"
#include "planner/search/fit_advisor.h"
#include "planner/search/layout_conflict.h"

namespace plumb { inline namespace planner {
namespace {

/// The evaluation of a layout that cannot exist; nothing if it can. `training` is the plan's, with what is assumed.
std::optional<Evaluation> evaluation_of_conflict(const Plan& plan, const TrainingSpec& training) {
  const auto conflict = layout_conflict(plan.model, training, plan.cluster, plan.layout);
  if (!conflict) return std::nullopt;
  return Evaluation{
      .layout = plan.layout, .infeasible = fmt::format("{}: {}", to_text(plan.layout), *conflict), .exists = false};
}

/// Returns why the layout does not fit devices and hosts; empty if it does.
std::string why_too_large(Pricing& pricing, const Plan& plan, const Evaluation& evaluation) {
  if (const auto shortfall = memory_shortfall(evaluation.simulation.peak_memory_bytes, plan.cluster, plan.layout)) {
    if (!plan.layout.meshes.empty())
      return fmt::format("{}: {}; give that rank a larger mesh or fewer layers, recompute=full or a smaller mbs",
                         to_text(plan.layout), to_text(*shortfall));
    FitAdvisor advisor(pricing, {});
    return fmt::format("{}: {}; {}", to_text(plan.layout), to_text(*shortfall), advisor.nearest_change(plan.layout));
  }
  if (plan.layout.offload == Offload{}) return {};
  const auto host = host_bytes_by_rank(evaluation.costs, host_optimizer_bytes_by_stage(evaluation.priced), plan.layout,
                                       order_of(plan));
  const auto reason = host_shortfall(plan.cluster, plan.layout, host);
  return reason ? fmt::format("{}: {}", to_text(plan.layout), *reason) : std::string();
}

}  // namespace

Plan plan_of(const Pricing& pricing, const Evaluation& evaluation, const std::optional<Schedule>& order) {
  Layout layout = evaluation.layout;
  layout.split = evaluation.priced.split;
  if (order) layout.schedule = order->name;
  TrainingSpec training = pricing.training_in(layout);
  return {.model = pricing.model(),
          .cluster = pricing.cluster(),
          .training = std::move(training),
          .layout = std::move(layout),
          .order = order,
          .prediction = prediction_of(evaluation)};
}

Evaluation evaluate(Pricing& pricing, const Plan& plan, std::optional<PricedLayout> priced,
                    const EvaluationOptions& options) {
  if (auto told = evaluation_of_conflict(plan, pricing.training())) return std::move(*told);
  const Schedule order = plan.order ? order_of(plan) : short_order_of(plan.training, plan.layout);
  if (!priced) priced = price_layout(pricing, plan.layout, order);
  if (options.resharding) priced = with_handovers(pricing, plan.layout, order, std::move(*priced), options.resharding);
  Evaluation result = plan.order ? evaluate(pricing, plan.layout, std::move(*priced), order, options)
                                 : evaluate(pricing, plan.layout, std::move(*priced), options);
  result.infeasible = why_too_large(pricing, plan, result);
  return result;
}

Evaluation evaluate(const Plan& plan, const SimulationOptions& options, const NetworkOptions& network,
                    Receives receives) {
  // The conflict is told before anything that pricing refuses.
  if (auto told = evaluation_of_conflict(plan, plan.training)) return std::move(*told);
  Pricing pricing(plan.model, plan.cluster, plan.training);
  return evaluate(pricing, plan, std::nullopt, {.simulation = options, .network = network, .receives = receives});
}

}}  // namespace plumb::planner
