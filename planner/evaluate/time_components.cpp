#include "planner/evaluate/time_components.h"

#include <algorithm>
#include <tuple>
#include <variant>

#include "planner/evaluate/stage_passes.h"
#include "planner/price/framework/kernel_time.h"
#include "planner/price/framework/layer_ops.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/rank_layout.h"

namespace plumb { inline namespace planner {
namespace {

Seconds& of(TimeComponents& components, TimeComponent component) {
  return components[static_cast<std::size_t>(component)];
}

TimeComponent component_of(const DeviceKernel& kernel) {
  if (kernel.kind == DeviceKernel::Kind::kTraffic) return TimeComponent::kMemoryBound;
  return kernel.kind == DeviceKernel::Kind::kGemm && !kernel.batched ? TimeComponent::kGemm : TimeComponent::kAttention;
}

void add_pass(TimeComponents& components, const Pricing& pricing, const StackSpec& stack, const PassOps& pass) {
  for (const DeviceKernel& kernel : pass.kernels) {
    of(components, component_of(kernel)) += device_kernel_time(pricing.kernels(), stack, kernel);
  }
}

/// Returns the time of the kernels of one micro-batch of one layer.
TimeComponents layer_components(const Pricing& pricing, const Layout& layout, const Layer& layer, const LayerWork& work,
                                Recompute recompute) {
  TimeComponents components{};
  const StackSpec& stack = *pricing.stack_of(layout);
  const LayerOps ops = layer_ops(layer, work, stack, element_bytes(pricing.kernels(), stack));
  for (const PassOps* pass : {&ops.forward, &ops.input_grad, &ops.weight_grad})
    add_pass(components, pricing, stack, *pass);
  if (recompute == Recompute::kSelective) add_pass(components, pricing, stack, ops.rebuild_selective);
  if (recompute == Recompute::kFull) add_pass(components, pricing, stack, ops.rebuild_full);
  return components;
}

TimeComponent component_of(Group group) {
  if (group == Group::kTensor) return TimeComponent::kTensorParallel;
  return group == Group::kData || group == Group::kPipeline ? TimeComponent::kDataParallel
                                                            : TimeComponent::kContextAndExpert;
}

/// Adds the operation's segments `times` over; compute goes to `compute`.
void add_segments(TimeComponents& components, const StageCosts& costs, Op op, TimeComponent compute, double times) {
  for (const std::vector<Segment>& part : costs.segments[static_cast<std::size_t>(op)]) {
    for (const Segment& segment : part) {
      const bool computes = segment.kind == Segment::Kind::kCompute;
      of(components, computes ? compute : component_of(segment.group)) += times * segment.seconds;
    }
  }
}

}  // namespace

std::string_view component_name(TimeComponent component) {
  constexpr std::array<std::string_view, kTimeComponentCount> kNames = {
      "compute GEMM", "attention", "memory-bound", "host", "TP", "CP and EP", "DP", "optimizer", "PP bubble"};
  return kNames[static_cast<std::size_t>(component)];
}

TimeComponents time_components(const Pricing& pricing, const Evaluation& evaluation, Seconds step_time) {
  const Layout& layout = evaluation.layout;
  TimeComponents sum{};
  const auto microbatches = static_cast<double>(microbatches_of(pricing.training(), layout));
  const bool told_apart = pricing.stack_of(layout) != nullptr;
  for (std::size_t part = 0; part < evaluation.layers.size(); ++part) {
    const StageCosts& costs = evaluation.costs.stages[part];
    const TimeComponent compute = told_apart ? TimeComponent::kHost : TimeComponent::kGemm;
    add_segments(sum, costs, Op::kForward, compute, microbatches);
    add_segments(sum, costs, Op::kBackward, compute, microbatches);
    add_segments(sum, costs, Op::kReduceGrad, compute, 1);
    add_segments(sum, costs, Op::kUnshard, compute, 1);
    add_segments(sum, costs, Op::kOptimizerStep, TimeComponent::kOptimizer, 1);
    if (!told_apart) continue;
    const Layout of_rank =
        layout.meshes.empty() ? layout : layout_of_rank(layout, evaluation.lowered.stages[part].rank);
    const LayerWork work = work_of(pricing.training(), of_rank);
    const std::vector<Recompute> recomputed = recomputation_by_layer(layout, evaluation.layers[part]);
    std::vector<std::tuple<Layer, Recompute, TimeComponents>> known;
    for (std::size_t index = 0; index < recomputed.size(); ++index) {
      const Layer& layer = evaluation.layers[part][index];
      const Recompute recompute = recomputed[index];
      auto found = std::ranges::find_if(known, [&](const auto& entry) {
        return std::get<Layer>(entry) == layer && std::get<Recompute>(entry) == recompute;
      });
      if (found == known.end())
        found = known.insert(found, {layer, recompute, layer_components(pricing, of_rank, layer, work, recompute)});
      const TimeComponents& components = std::get<TimeComponents>(*found);
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += microbatches * components[i];
        of(sum, TimeComponent::kHost) -= microbatches * components[i];  // the rest of the compute segments
      }
    }
  }
  Seconds rest = step_time;
  for (Seconds& component : sum) {
    component /= static_cast<double>(layout.pipeline);
    rest -= component;
  }
  of(sum, TimeComponent::kBubble) += rest;
  return sum;
}

}}  // namespace plumb::planner
