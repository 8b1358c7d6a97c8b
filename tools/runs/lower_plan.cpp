#include "tools/runs/lower_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/evaluate/data_parallel_price.h"
#include "planner/evaluate/priced_layout.h"
#include "schedules/error.h"
#include "tools/io/usage.h"
#include "tools/runs/run_layout.h"

namespace plumb { inline namespace tools {
namespace {

void require_cpu_layout(const Plan& plan) {
  const Layout& layout = plan.layout;
  const auto refuse = [](const std::string& what, std::string_view remedy) {
    throw SpecError(fmt::format("the cpu backend does not run {}: {}", what, remedy));
  };
  if (plan.model.graph) {
    const std::vector<GraphNode> nodes = graph_nodes(*plan.model.graph, plan.training.sequence);
    const auto missing = std::ranges::find(nodes, false, &GraphNode::runs);
    if (!is_runnable(nodes)) {
      const std::string what = missing != nodes.end() ? fmt::format("{} ({})", missing->op, missing->name) : "a branch";
      refuse(
          fmt::format("{} of {}", what, plan.model.name),
          "it runs chains of convolutions with a bias, pooling, linear layers and a loss; plan alexnet, vgg-16 or mlp");
    }
    if (plan.layout.recompute != Recompute::kNone)
      refuse("recomputation of a layer graph's blocks", "plan with --layout recompute=none");
  }
  if (layout.recompute_layers > 0)
    refuse("recomputation of some layers of a stage", "plan with --layout recompute_layers=0");
  const Precision precision = plan.training.precision;
  if (precision == Precision::kTf32 || is_quantized(precision))
    refuse(fmt::format("{}", precision_name(precision)), "plan with --precision fp32, bf16 or fp16");
  if (bytes_per_element(plan.training.gradient_precision) != 4)
    refuse(fmt::format("gradients in {}", precision_name(plan.training.gradient_precision)),
           "plan with gradients in fp32");
}

/// Returns the layers of each bucket by [stage][bucket], as the planner has priced them; empty if gradients are not
/// reduced in buckets.
std::vector<std::vector<int>> bucket_layers(const Plan& plan, const Evaluation& evaluation) {
  std::vector<std::vector<int>> buckets;
  if (evaluation.priced.buckets.empty()) return buckets;
  const Pricing pricing(plan.model, plan.cluster, plan.training);
  for (const StagePlace& place : evaluation.lowered.stages) {
    std::vector<LayerGradient> gradients;
    for (const Layer& layer : evaluation.layers[place.model_part]) {
      const ExpertDivision division{plan.layout.expert, plan.layout.expert_tensor};
      const std::int64_t experts = expert_parameter_count(layer, division);
      gradients.push_back(
          {.parameters = parameter_count(layer, plan.layout.tensor, division) - experts, .expert_parameters = experts});
    }
    buckets.emplace_back();
    for (const GradientBucket& bucket :
         gradient_buckets(gradients, bucket_parameters(pricing, plan.layout), Seconds{0}))
      buckets.back().push_back(bucket.layers);
  }
  return buckets;
}

/// Returns the ZeRO stage whose UNSHARDs and RESHARDs the schedule has.
int zero_of(const Schedule& lowered, int planned) {
  const auto has = [&](Op op) {
    return std::ranges::any_of(lowered.ranks, [op](const std::vector<Action>& actions) {
      return std::ranges::find(actions, op, &Action::op) != actions.end();
    });
  };
  if (has(Op::kReshard)) return 3;
  return has(Op::kUnshard) ? std::clamp(planned, 1, 2) : 0;
}

bool lists_recomputation(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::count(actions, Op::kRecompute, &Action::op) > 0;
  });
}

}  // namespace

ContextAttention context_attention(const std::string& name) {
  if (name == "ring") return ContextAttention::kRing;
  if (name == "ulysses") return ContextAttention::kUlysses;
  throw UsageError(fmt::format("--context {}: give ring or ulysses", name));
}

std::optional<HalfFormat> half_format(Precision precision) {
  if (precision == Precision::kBf16) return HalfFormat::kBf16;
  if (precision == Precision::kFp16) return HalfFormat::kFp16;
  return {};
}

OptimizerSettings optimizer_settings(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdamW:
      return AdamW{};
    case Optimizer::kAdamW8Bit:
      return AdamW8Bit{};
    case Optimizer::kAdafactor:
      return Adafactor{};
    case Optimizer::kLion:
      return Lion{};
    case Optimizer::kSgd:
      return Sgd{};
  }
  return AdamW{};
}

RunSpec lower_plan(const Plan& plan, const Evaluation& evaluation, const RunSettings& settings) {
  require_cpu_layout(plan);
  if (plan.model.mtp_modules > 0) {
    throw SpecError(
        fmt::format("{} has modules of multi-token prediction, which are priced and not run: leave mtp_modules "
                    "out of the model",
                    plan.model.name));
  }
  RunSpec spec{.grid = grid_of(plan.layout),
               .meshes = stage_meshes(plan.layout.meshes),
               .sequence_parallel = plan.layout.sequence_parallel,
               .context_attention = settings.context_attention,
               .schedule = evaluation.lowered,
               .microbatch = plan.layout.microbatch,
               .sequence = plan.training.sequence,
               .optimizer = optimizer_settings(plan.training.optimizer),
               .half = half_format(plan.training.precision),
               .clip_norm = settings.clip_norm,
               .zero = plan.layout.zero,
               .shard = plan.layout.shard,
               .layerwise = settings.layerwise && plan.layout.zero >= 2,
               .offload_optimizer = settings.offload_optimizer || plan.layout.offload.optimizer,
               .bucket_layers = bucket_layers(plan, evaluation),
               .seed = settings.seed,
               .text = {settings.text.begin(), settings.text.end()},
               .text_name = settings.text_name,
               .steps = settings.steps};
  for (const StagePlace& place : evaluation.lowered.stages)
    spec.stage_layers.push_back(evaluation.layers[place.model_part]);
  if (plan.model.graph) {
    const std::vector<Layer> layers = model_layers(plan.model);
    spec.samples = {.shape = std::get<InputLayer>(layers.front()), .outputs = std::get<LossLayer>(layers.back()).width};
  }
  if (plan.layout.recompute == Recompute::kFull)  // keeps each layer's input, or the stage's alone where the list has R
    spec.rebuild = lists_recomputation(evaluation.lowered) ? Recompute::kStage : Recompute::kFull;
  if (plan.layout.recompute == Recompute::kSelective) spec.rebuild = Recompute::kSelective;
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
  const std::vector<std::vector<Layer>> layers = layers_by_part(pricing, price_layout(pricing, layout, order).split);
  spec.stage_layers.clear();
  for (const StagePlace& place : lowered.stages) spec.stage_layers.push_back(layers[place.model_part]);
  for (const auto& actions : lowered.ranks)
    for (const Action& action : actions)
      if (action.op == Op::kRecompute) {
        spec.rebuild = Recompute::kStage;
        spec.rebuild_which = RebuildWhich::kListed;
      }
  spec.schedule = lowered;
  spec.zero = zero_of(lowered, spec.zero);
  if (spec.zero == 0) spec.shard = 0;
  spec.bucket_layers.clear();
  return spec;
}

}}  // namespace plumb::tools
