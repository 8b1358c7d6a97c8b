// Emits convolution and pooling. Images are [height, width, channels], and a row of a tensor is one image.

#include "kernels/layer/emit/program_builder.h"

namespace plumb { inline namespace kernels {
namespace {

constexpr std::int64_t kBitsInWord = 32;

/// Returns the mask of `elements` elements, a bit each.
int mask(ProgramBuilder& builder, std::int64_t elements) {
  return builder.tensor("relu mask", 1, (elements + kBitsInWord - 1) / kBitsInWord, StoredType::kInteger);
}

}  // namespace

void emit(ProgramBuilder& builder, const ConvolutionLayer& layer) {
  const int weight =
      builder.parameter("weight", {layer.filters, layer.kernel * layer.kernel * layer.channels / layer.groups});
  const int bias = builder.parameter("bias", {layer.filters});
  if (builder.parameters_only()) return;
  const std::int64_t images = builder.tokens();
  const LayerEnds ends = ends_of(layer);
  const std::vector<std::int64_t> area = {images * ends.handed / layer.filters, layer.filters};
  const auto convolution = [&](KernelKind kind) {
    return kernel_call(kind, {images, layer.height, layer.width, layer.channels, layer.filters, layer.kernel,
                              layer.stride, layer.padding, layer.groups});
  };

  builder.begin(Pass::kForward);
  const int input = builder.input(images, ends.taken);
  const int output = builder.tensor("output", images, ends.handed);
  builder.kernel("convolution", convolution(KernelKind::kConvolutionForward), {input}, {output}).parameters = {weight};
  builder.kernel("bias", kernel_call(KernelKind::kBiasForward, area), {output}, {output}).parameters = {bias};
  const int passed = layer.relu ? mask(builder, builder.at(output).elements()) : -1;
  if (layer.relu) builder.kernel("relu", kernel_call(KernelKind::kReluForward, area), {output}, {output, passed});
  builder.program().output = output;

  builder.begin(Pass::kInputGrad);
  const int gradient = builder.output_gradient(images, ends.handed);
  if (layer.relu) builder.kernel("relu", kernel_call(KernelKind::kReluBackward, area), {gradient, passed}, {gradient});
  if (layer.input_grad) {
    const int dx = builder.tensor("input gradient", images, ends.taken);
    builder.kernel("convolution", convolution(KernelKind::kConvolutionInputGrad), {gradient}, {dx}).parameters = {
        weight};
    builder.program().input_gradient = dx;
  }

  builder.begin(Pass::kWeightGrad);
  builder.kernel("convolution", convolution(KernelKind::kConvolutionWeightGrad), {gradient, input}, {}).gradients = {
      weight};
  builder.kernel("bias", kernel_call(KernelKind::kBiasBackward, area), {gradient}, {}).gradients = {bias};
}

void emit(ProgramBuilder& builder, const PoolingLayer& layer) {
  if (builder.parameters_only()) return;
  const std::int64_t images = builder.tokens();
  const LayerEnds ends = ends_of(layer);
  const bool average = layer.pooling == PoolingKind::kAverage;
  const auto pooling = [&](KernelKind kind) {
    return kernel_call(
        kind, {images, layer.height, layer.width, layer.channels, layer.kernel, layer.stride, average ? 1 : 0});
  };

  builder.begin(Pass::kForward);
  const int input = builder.input(images, ends.taken);
  const int output = builder.tensor("output", images, ends.handed);
  Positions writes = {output};
  if (!average) writes.push_back(builder.tensor("places of the largest", images, ends.handed, StoredType::kInteger));
  builder.kernel("pooling", pooling(KernelKind::kPoolingForward), {input}, writes);
  builder.program().output = output;

  builder.begin(Pass::kInputGrad);
  Positions reads = {builder.output_gradient(images, ends.handed)};
  if (!average) reads.push_back(writes[1]);
  const int dx = builder.tensor("input gradient", images, ends.taken);
  builder.kernel("pooling", pooling(KernelKind::kPoolingBackward), reads, {dx});
  builder.program().input_gradient = dx;
}

}}  // namespace plumb::kernels
