#include "kernels/layer/layer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "kernels/layer/kind_parts.h"

namespace plumb { inline namespace kernels {
namespace {

/// Returns one update for each parameter tensor, since their weight decay differs.
std::vector<KernelCall> optimizer_kernels(const Layer& layer, const LayerWork& work) {
  std::vector<KernelCall> calls;
  for (const ParameterTensor& tensor : layer_parameters(layer, work.tensor_parallel, work.experts))
    calls.push_back(kernel_call(KernelKind::kAdamW, {element_count(tensor)}));
  return calls;
}

}  // namespace

std::string_view layer_kind_name(const Layer& layer) {
  constexpr std::array<std::string_view, std::variant_size_v<Layer>> kNames = {
      "embedding", "transformer", "head", "input", "convolution", "pooling", "linear", "mlp", "loss"};
  return kNames[layer.index()];
}

std::vector<ParameterTensor> layer_parameters(const Layer& layer, int tensor_parallel, ExpertDivision experts) {
  return std::visit([&](const auto& kind) { return parameters_of(kind, tensor_parallel, experts); }, layer);
}

std::int64_t element_count(const ParameterTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

std::int64_t parameter_count(const Layer& layer, int tensor_parallel, ExpertDivision experts) {
  std::int64_t count = 0;
  for (const ParameterTensor& tensor : layer_parameters(layer, tensor_parallel, experts))
    count += element_count(tensor);
  return count;
}

std::int64_t expert_parameter_count(const Layer& layer, ExpertDivision experts) {
  std::int64_t count = 0;
  for (const ParameterTensor& tensor : layer_parameters(layer, 1, experts)) {
    if (tensor.expert) count += element_count(tensor);
  }
  return count;
}

std::int64_t expert_capacity(const TransformerLayer& layer, std::int64_t sequence) {
  if (layer.capacity_factor <= 0) return sequence;
  const auto picks = static_cast<double>(sequence * layer.experts_per_token);
  const auto even = layer.capacity_factor * picks / static_cast<double>(layer.experts);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(even)), 1, sequence);
}

bool has_kernels(const Layer& layer) {
  const auto* block = std::get_if<TransformerLayer>(&layer);
  return block == nullptr || block->kv_rank == 0;
}

std::vector<KernelCall> layer_kernels(const Layer& layer, const LayerWork& work, Pass pass) {
  assert(has_kernels(layer));
  if (pass == Pass::kOptimizer) return optimizer_kernels(layer, work);
  return std::visit([&](const auto& kind) { return kernels_of(kind, work, pass); }, layer);
}

std::vector<SavedTensor> saved_tensors(const Layer& layer, const LayerWork& work) {
  return std::visit([&](const auto& kind) { return saved_of(kind, work); }, layer);
}

std::int64_t workspace_elements(const Layer& layer, const LayerWork& work, Pass pass) {
  return std::visit([&](const auto& kind) { return workspace_of(kind, work, pass); }, layer);
}

std::int64_t input_elements(const Layer& layer, const LayerWork& work) {
  return std::visit([&](const auto& kind) { return input_of(kind, work); }, layer);
}

std::int64_t output_elements(const Layer& layer, const LayerWork& work) {
  return std::visit([&](const auto& kind) { return output_of(kind, work); }, layer);
}

}}  // namespace plumb::kernels
