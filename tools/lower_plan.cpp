#include "tools/lower_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/cost/cost_table.h"
#include "schedules/error.h"

namespace plumb {
namespace {

void require_cpu_layout(const Plan& plan) {
  const Layout& layout = plan.layout;
  const auto refuse = [](const std::string& what, std::string_view remedy) {
    throw SpecError(fmt::format("the cpu backend does not run {}: {}", what, remedy));
  };
  if (plan.training.stack) {
    refuse(fmt::format("the stack {}", plan.training.stack->name), "plan without --stack, for Plumb's own executor");
  }
  if (plan.training.optimizer != Optimizer::kAdamW) {
    refuse(fmt::format("{}", optimizer_name(plan.training.optimizer)), "plan with --optimizer adamw");
  }
  if (plan.training.precision != Precision::kFp32) {
    refuse(fmt::format("{}", precision_name(plan.training.precision)), "plan with --precision fp32");
  }
  if (layout.tensor > 1) refuse(fmt::format("tensor parallelism (tp={})", layout.tensor), "plan with --layout tp=1");
  if (layout.zero > 0 && layout.data > 1)
    refuse(fmt::format("ZeRO {} over replicas", layout.zero), "plan with --layout zero=0");
}

}  // namespace

RunSpec lower_plan(const Plan& plan, const Predicted& predicted, const RunSettings& settings) {
  require_cpu_layout(plan);
  RunSpec spec{.grid = grid_of(plan.layout),
               .schedule = predicted.lowered,
               .microbatch = plan.layout.microbatch,
               .sequence = plan.training.sequence,
               .seed = settings.seed,
               .text = {settings.text.begin(), settings.text.end()},
               .text_name = settings.text_name,
               .steps = settings.steps};
  for (const StagePlace& place : predicted.lowered.stages)
    spec.stage_layers.push_back(predicted.priced.layers[place.model_part]);
  if (plan.layout.recompute == Recompute::kFull) spec.rebuild = Rebuild::kStage;
  if (plan.layout.recompute == Recompute::kSelective) spec.rebuild = Rebuild::kSelective;
  return spec;
}

RunSpec with_schedule(RunSpec spec, const Plan& plan, const Schedule& order, const Schedule& lowered) {
  const auto ranks = static_cast<int>(lowered.ranks.size());
  if (ranks != spec.grid.pipeline || lowered.microbatches != spec.schedule.microbatches) {
    throw ScheduleError(fmt::format("{} has {} ranks and {} micro-batches, and the plan {} and {}: give it the plan's",
                                    lowered.name, ranks, lowered.microbatches, spec.grid.pipeline,
                                    spec.schedule.microbatches));
  }
  Layout layout = plan.layout;
  int parts = 0;
  for (const StagePlace& place : lowered.stages) parts = std::max(parts, place.model_part + 1);
  if (parts != static_cast<int>(layout.split.size())) layout.split.clear();
  Pricing pricing(plan.model, plan.cluster, plan.training);
  const std::vector<std::vector<Layer>> layers = price_layout(pricing, layout, order).layers;
  spec.stage_layers.clear();
  for (const StagePlace& place : lowered.stages) spec.stage_layers.push_back(layers[place.model_part]);
  for (const auto& actions : lowered.ranks)
    for (const Action& action : actions)
      if (action.op == Op::kRecompute) {
        spec.rebuild = Rebuild::kStage;
        spec.rebuild_which = RebuildWhich::kListed;
      }
  spec.schedule = lowered;
  return spec;
}

}  // namespace plumb
