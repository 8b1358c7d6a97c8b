#include "tools/reports/simulation_context.h"

#include <utility>

#include "simulator/network/conditioning.h"

namespace plumb { inline namespace tools {

ReportContext explained(ReportContext context, const Schedule& lowered, const CostTable& costs,
                        const Simulation& simulation) {
  context.optimizer_steps = optimizer_steps_of(lowered);
  context.idle = idle_by_cause(simulation.timeline, lowered);
  if (simulation.critical_path.empty()) return context;
  context.exposed = exposed_by_rank(costs, simulation.timeline, context.idle);
  if (context.has_memory) context.memory_peaks = memory_peaks(lowered, costs, simulation.timeline);
  if (simulation.engine != "compiled") return context;
  context.exposed_on_path = exposed_on_path(lowered, costs, simulation.critical_path);
  context.sensitivity = sensitivity_of(lowered, costs, simulation.critical_path);
  context.conditioning = Conditioning{};
  return context;
}

std::optional<NetworkGradient> add_shared_sensitivity(ReportContext& context, const Schedule& lowered,
                                                      const CostTable& costs, const NetworkSpec& network, Sends sends) {
  std::optional<NetworkGradient> gradient = network_gradient(lowered, costs, network, sends);
  if (!gradient) {
    context.no_sensitivity = "more transfers share links than derivatives are kept of";
    return {};
  }
  context.conditioning = conditioning_of(lowered, *gradient);
  if (context.conditioning->is_ill) return {};
  context.sensitivity = sensitivity_of(lowered, costs, *gradient);
  return gradient;
}

ReportContext context_of(const Plan& plan, const Evaluation& evaluation, const NetworkOptions& options, Sends sends) {
  const auto tokens = static_cast<double>(tokens_per_step(plan.training));
  const ReportContext known{.samples_per_step = static_cast<double>(plan.training.global_batch),
                            .tokens_per_step = has_sequence(plan.model) ? std::optional(tokens) : std::nullopt,
                            .mfu_ratio = evaluation.rates.mfu_ratio,
                            .has_memory = true,
                            .by_resource = resource_sensitivity(plan, evaluation)};
  ReportContext context = explained(known, evaluation.lowered, evaluation.costs, evaluation.simulation);
  if (!evaluation.network || evaluation.simulation.critical_path.empty()) return context;
  const auto gradient =
      add_shared_sensitivity(context, evaluation.lowered, evaluation.costs, *evaluation.network, sends);
  if (gradient) context.by_resource = resource_sensitivity(plan, evaluation, *gradient, options);
  return context;
}

}}  // namespace plumb::tools
