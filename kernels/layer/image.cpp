#include "kernels/layer/kind_parts.h"

namespace plumb { inline namespace kernels {
namespace {

/// Returns the pixels of the output of one image.
std::int64_t output_pixels(const ConvolutionLayer& layer) {
  return windows_in(layer.height, layer.kernel, layer.stride, layer.padding) *
         windows_in(layer.width, layer.kernel, layer.stride, layer.padding);
}
std::int64_t output_pixels(const PoolingLayer& layer) {
  return windows_in(layer.height, layer.kernel, layer.stride) * windows_in(layer.width, layer.kernel, layer.stride);
}

KernelCall convolution_call(const ConvolutionLayer& layer, const LayerWork& work, KernelKind kind) {
  return kernel_call(kind, {tokens_in(work), layer.height, layer.width, layer.channels, layer.filters, layer.kernel,
                            layer.stride, layer.padding, layer.groups});
}

}  // namespace

std::vector<ParameterTensor> parameters_of(const ConvolutionLayer& layer, int, ExpertDivision) {
  return {{"weight", {layer.filters, layer.kernel * layer.kernel * layer.channels / layer.groups}},
          {"bias", {layer.filters}}};
}

std::vector<KernelCall> kernels_of(const ConvolutionLayer& layer, const LayerWork& work, Pass pass) {
  const std::vector<std::int64_t> output = {tokens_in(work) * output_pixels(layer), layer.filters};
  std::vector<KernelCall> calls;
  if (pass == Pass::kForward) {
    calls.push_back(convolution_call(layer, work, KernelKind::kConvolutionForward));
    calls.push_back(kernel_call(KernelKind::kBiasForward, output));
    if (layer.relu) calls.push_back(kernel_call(KernelKind::kReluForward, output));
  } else if (pass == Pass::kInputGrad) {
    if (layer.relu) calls.push_back(kernel_call(KernelKind::kReluBackward, output));
    if (layer.input_grad) calls.push_back(convolution_call(layer, work, KernelKind::kConvolutionInputGrad));
  } else {
    calls.push_back(convolution_call(layer, work, KernelKind::kConvolutionWeightGrad));
    calls.push_back(kernel_call(KernelKind::kBiasBackward, output));
  }
  return calls;
}

std::vector<SavedTensor> saved_of(const ConvolutionLayer& layer, const LayerWork& work) {
  std::vector<SavedTensor> tensors = {
      {.name = "input", .elements = input_of(layer, work), .needed_by_weight_grad = true}};
  if (layer.relu)
    tensors.push_back({.name = "relu mask", .elements = (output_of(layer, work) + 31) / 32, .single_precision = true});
  tensors.push_back({.name = "output gradient",
                     .elements = output_of(layer, work),
                     .needed_by_weight_grad = true,
                     .from_input_grad = true});
  return tensors;
}

std::int64_t workspace_of(const ConvolutionLayer& layer, const LayerWork& work, Pass pass) {
  return pass == Pass::kInputGrad && layer.input_grad ? input_of(layer, work) : 0;  // the input's gradient
}

std::int64_t input_of(const ConvolutionLayer& layer, const LayerWork& work) {
  return tokens_in(work) * layer.height * layer.width * layer.channels;
}

std::int64_t output_of(const ConvolutionLayer& layer, const LayerWork& work) {
  return tokens_in(work) * output_pixels(layer) * layer.filters;
}

std::vector<ParameterTensor> parameters_of(const PoolingLayer&, int, ExpertDivision) {
  return {};
}

std::vector<KernelCall> kernels_of(const PoolingLayer& layer, const LayerWork& work, Pass pass) {
  if (pass == Pass::kWeightGrad) return {};
  return {kernel_call(pass == Pass::kForward ? KernelKind::kPoolingForward : KernelKind::kPoolingBackward,
                      {tokens_in(work), layer.height, layer.width, layer.channels, layer.kernel, layer.stride,
                       layer.pooling == PoolingKind::kAverage ? 1 : 0})};
}

std::vector<SavedTensor> saved_of(const PoolingLayer& layer, const LayerWork& work) {
  if (layer.pooling == PoolingKind::kAverage) return {};
  return {{.name = "places of the largest", .elements = output_of(layer, work), .single_precision = true}};
}

std::int64_t workspace_of(const PoolingLayer& layer, const LayerWork& work, Pass pass) {
  return pass == Pass::kInputGrad ? input_of(layer, work) : 0;  // the input's gradient
}

std::int64_t input_of(const PoolingLayer& layer, const LayerWork& work) {
  return tokens_in(work) * layer.height * layer.width * layer.channels;
}

std::int64_t output_of(const PoolingLayer& layer, const LayerWork& work) {
  return tokens_in(work) * output_pixels(layer) * layer.channels;
}

}}  // namespace plumb::kernels
