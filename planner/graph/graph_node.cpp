#include "planner/graph/graph_node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plumb { inline namespace planner {

std::int64_t element_count(const TensorShape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::string to_text(const TensorShape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

double product_flops(const GraphKernel& kernel) {
  if (kernel.kind == GraphKernel::Kind::kAttention) return kernel.attention_flops;
  if (kernel.kind == GraphKernel::Kind::kTraffic) return 0;
  return 2.0 * static_cast<double>(kernel.rows) * static_cast<double>(kernel.columns) *
         static_cast<double>(kernel.depth) * static_cast<double>(kernel.count * kernel.repeats);
}

std::int64_t parameter_count(const GraphNode& node) {
  std::int64_t count = 0;
  for (std::size_t i = node.tied_to >= 0 ? 1 : 0; i < node.parameters.size(); ++i)
    count += element_count(node.parameters[i]);
  return count;
}

double forward_flops(const GraphNode& node) {
  double flops = 0;
  if (node.layer) {
    for (const KernelCall& call : layer_kernels(*node.layer, {}, Pass::kForward)) {
      if (call.kind == KernelKind::kGemm || call.kind == KernelKind::kConvolutionForward) flops += call.flops;
    }
    return flops;
  }
  for (const GraphKernel& kernel : node.forward) flops += product_flops(kernel);
  return flops;
}

}}  // namespace plumb::planner
