#include "kernels/layer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/layer/emit/program_builder.h"
#include "kernels/layer/layer_ends.h"
#include "kernels/layer/program/fused.h"

namespace plumb { inline namespace kernels {
namespace {

LayerProgram emitted(const Layer& layer, const LayerWork& work, Machine machine, bool parameters_only) {
  ProgramBuilder builder(work, machine, parameters_only);
  std::visit([&](const auto& kind) { emit(builder, kind); }, layer);
  return std::move(builder.program());
}

LayerEnds ends(const Layer& layer) {
  return std::visit([](const auto& kind) { return ends_of(kind); }, layer);
}

}  // namespace

std::string_view layer_kind_name(const Layer& layer) {
  constexpr std::array<std::string_view, std::variant_size_v<Layer>> kNames = {
      "embedding", "transformer", "head", "input", "convolution", "pooling", "linear", "mlp", "loss"};
  return kNames[layer.index()];
}

LayerProgram layer_program(const Layer& layer, const LayerWork& work, Machine machine) {
  return emitted(layer, work, machine, false);
}

LayerProgram fused_program(const Layer& layer, const LayerWork& work, bool rebuilds_cheap) {
  Fusion fusion;  // linear layers and MLPs of a device have plain products
  if (const auto* block = std::get_if<TransformerLayer>(&layer); block != nullptr && !block->mixes_states())
    fusion = {.products = true,
              .gelu = block->mlp == MlpKind::kGelu && !block->exact_gelu && block->experts == 0 && !rebuilds_cheap};
  return fused(layer_program(layer, work, Machine::kDevice), fusion);
}

std::vector<ParameterTensor> layer_parameters(const Layer& layer, int tensor_parallel, ExpertDivision experts) {
  return emitted(layer, {.tensor_parallel = tensor_parallel, .experts = experts}, Machine::kHost, true).parameters;
}

std::int64_t parameter_count(const Layer& layer, int tensor_parallel, ExpertDivision experts) {
  std::int64_t count = 0;
  for (const ParameterTensor& tensor : layer_parameters(layer, tensor_parallel, experts))
    if (tensor.balance_rate == 0) count += element_count(tensor);
  return count;
}

std::int64_t expert_parameter_count(const Layer& layer, ExpertDivision experts) {
  std::int64_t count = 0;
  for (const ParameterTensor& tensor : layer_parameters(layer, 1, experts)) {
    if (tensor.expert) count += element_count(tensor);
  }
  return count;
}

std::string_view kernel_without_code(const Layer& layer) {
  for (const LayerStep& step : layer_program(layer, {}).steps)
    if (step.call() != nullptr && is_priced_only(step.call()->kind)) return kernel_name(step.call()->kind);
  return {};
}

bool is_on_devices(const Layer& layer) {
  const LayerProgram program = layer_program(layer, {}, Machine::kDevice);
  const auto runs = [](const LayerStep& step) { return step.call() == nullptr || !is_priced_only(step.call()->kind); };
  return std::ranges::all_of(program.steps, runs);
}

std::vector<KernelCall> layer_kernels(const Layer& layer, const LayerWork& work, Pass pass) {
  if (pass != Pass::kOptimizer) return kernels_of(layer_program(layer, work), pass);
  std::vector<KernelCall> calls;  // one for each tensor, since their weight decay differs
  for (const ParameterTensor& tensor : layer_parameters(layer, work.tensor_parallel, work.experts))
    if (tensor.balance_rate == 0) calls.push_back(kernel_call(KernelKind::kAdamW, {element_count(tensor)}));
  return calls;
}

std::int64_t input_elements(const Layer& layer, const LayerWork& work) {
  return own_rows_in(work) * ends(layer).taken;
}

std::int64_t output_elements(const Layer& layer, const LayerWork& work) {
  return own_rows_in(work) * ends(layer).handed;
}

}}  // namespace plumb::kernels
