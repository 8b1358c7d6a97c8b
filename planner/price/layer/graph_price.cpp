#include "planner/price/layer/graph_price.h"

#include <utility>

#include "planner/price/kernel/gemm_time.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the time of a kernel. `fixed_bytes` is the size of an element that does not grow with the samples: a weight
/// or its gradient.
Seconds graph_kernel_time(const KernelPrices& kernels, const GraphKernel& kernel, std::int64_t samples,
                          std::int64_t fixed_bytes, GemmForm form) {
  const auto grown = static_cast<double>(samples);
  const double bytes = kernel.elements * grown * static_cast<double>(kernels.element_bytes) +
                       kernel.fixed_elements * static_cast<double>(fixed_bytes);
  const DeviceSpec& device = kernels.device;
  const Seconds memory{bytes / (device.memory_bytes_per_second * device.memory_efficiency)};
  if (kernel.kind == GraphKernel::Kind::kTraffic) return kernel.repeats * (device.kernel_fixed + memory);
  if (kernel.kind == GraphKernel::Kind::kAttention) {
    const Seconds compute{kernel.attention_flops * grown /
                          (kernels.wide_flops_per_second * device.attention_efficiency)};
    return device.kernel_fixed + std::max(compute, memory);
  }
  using Grows = GraphKernel::Grows;
  const std::int64_t m = kernel.rows * (kernel.grows == Grows::kRows ? samples : 1);
  const std::int64_t k = kernel.depth * (kernel.grows == Grows::kDepth ? samples : 1);
  const std::int64_t count = kernel.count * (kernel.grows == Grows::kCount ? samples : 1);
  const GemmShape shape{.m = static_cast<double>(m),
                        .n = static_cast<double>(kernel.columns),
                        .k = static_cast<double>(k),
                        .count = static_cast<double>(count)};
  const KernelCall call =
      kernel_call(KernelKind::kGemm, {m, kernel.columns, k, count, static_cast<std::int64_t>(form)});
  const double corrected = kernel_time(kernels, call) / roofline_time(kernels, call);
  return static_cast<double>(kernel.repeats) * corrected *
         gemm_time(device, kernels.peak_flops_per_second, shape, bytes);
}

void add_kernels(PassPrice& price, const KernelPrices& kernels, const std::vector<GraphKernel>& list,
                 std::int64_t samples, GemmForm form) {
  const std::int64_t fixed = form == GemmForm::kWeightGrad ? kernels.gradient_bytes : kernels.element_bytes;
  for (const GraphKernel& kernel : list) price.compute += graph_kernel_time(kernels, kernel, samples, fixed, form);
}

}  // namespace

LayerPrice graph_node_price(const KernelPrices& kernels, const GraphNode& node, std::int64_t samples) {
  LayerPrice price;
  add_kernels(price.forward, kernels, node.forward, samples, GemmForm::kForward);
  add_kernels(price.input_grad, kernels, node.input_grad, samples, GemmForm::kInputGrad);
  add_kernels(price.weight_grad, kernels, node.weight_grad, samples, GemmForm::kWeightGrad);
  if (node.layer) {
    const LayerWork work{.microbatch = samples};
    const LayerProgram program =
        kernels.fused ? fused_program(*node.layer, work, false) : layer_program(*node.layer, work);
    for (const auto& [pass, part] :
         {std::pair{Pass::kForward, &price.forward}, std::pair{Pass::kInputGrad, &price.input_grad},
          std::pair{Pass::kWeightGrad, &price.weight_grad}})
      for (const KernelCall& call : kernels_of(program, pass)) part->compute += kernel_time(kernels, call);
  }
  if (node.segment >= 0) price.rebuild_full = price.forward;
  return price;
}

Seconds graph_optimizer_time(const KernelPrices& kernels, const GraphNode& node, int shards) {
  Seconds time{0};
  for (const ParameterTensor& tensor : node.parameters) {
    const std::int64_t elements = (element_count(tensor) + shards - 1) / shards;
    time += kernel_time(kernels, update_call(kernels, tensor, elements));
  }
  return time;
}

}}  // namespace plumb::planner
