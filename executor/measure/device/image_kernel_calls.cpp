#include "executor/measure/device/image_kernel_calls.h"

#include <algorithm>
#include <cassert>

#include "executor/layers/device/convolution_products.h"
#include "kernels/counter_random.h"
#include "kernels/cpu/images/image_sizes.h"
#include "kernels/simt/images/patches.h"
#include "kernels/simt/relu.h"

namespace plumb { inline namespace executor {
namespace {

constexpr double kDropProbability = 0.1;

std::int64_t outputs_of(const PoolingSize& size) {
  const auto windows = [&](std::int64_t pixels) { return (pixels - size.kernel) / size.stride + 1; };
  return size.images * windows(size.height) * windows(size.width) * size.channels;
}

/// Returns the elements of a convolution's output.
std::int64_t outputs_of(const ConvolutionSize& size) {
  const simt::PatchGrid grid = simt::patch_grid(size);
  return size.images * grid.rows * grid.columns * size.filters;
}

/// Enqueues a pass of a convolution without bias and ReLU.
void enqueue_convolution(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  const ConvolutionSize size = convolution_size(call.shape);
  const ConvolutionProducts products(size, with.element_bytes());
  const std::int64_t filters = size.filters * simt::patch_grid(size).patch;
  std::byte* const inputs = with.stored(size.images * size.height * size.width * size.channels);
  std::byte* const outputs = with.stored(outputs_of(size));
  std::byte* const workspace = with.bytes(products.workspace_bytes());
  if (call.kind == KernelKind::kConvolutionForward)
    products.forward(kernels, outputs, inputs, with.stored(filters), workspace);
  else if (call.kind == KernelKind::kConvolutionInputGrad)
    products.input_grad(kernels, inputs, outputs, with.stored(filters), workspace);
  else
    products.weight_grad(kernels, with.floats(filters), outputs, inputs, workspace);
}

void enqueue_pooling(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  const PoolingSize size = pooling_size(call.shape);
  const std::int64_t inputs = size.images * size.height * size.width * size.channels, outputs = outputs_of(size);
  const bool has_places = call.shape[6] == 0;
  std::byte *const outside = with.stored(outputs), *const inside = with.stored(inputs);
  if (call.kind == KernelKind::kPoolingBackward)
    return kernels.pooling_backward(inside, outside, has_places ? with.integers() : nullptr, size);
  auto* const places = has_places ? reinterpret_cast<std::int32_t*>(with.bytes(outputs * 4)) : nullptr;
  kernels.pooling_forward(outside, places, inside, size);
}

}  // namespace

bool is_image_kernel(KernelKind kind) {
  return kind >= KernelKind::kConvolutionForward && kind <= KernelKind::kSquaredError;
}

std::int64_t image_integer_count(const KernelCall& call) {
  return call.kind == KernelKind::kPoolingBackward && call.shape[6] == 0 ? outputs_of(pooling_size(call.shape)) : 0;
}

std::vector<std::int32_t> image_integers(const KernelCall& call) {
  const std::int64_t count = image_integer_count(call);
  if (count == 0) return {};
  const PoolingSize size = pooling_size(call.shape);
  const std::int64_t columns = (size.width - size.kernel) / size.stride + 1, windows = outputs_of(size) / size.images;
  std::vector<std::int32_t> places(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t window = i % windows / size.channels, row = window / columns, column = window % columns;
    const auto in_window =
        static_cast<std::int64_t>(mix_bits(static_cast<std::uint64_t>(i)) >> 8U) % (size.kernel * size.kernel);
    const std::int64_t y = row * size.stride + in_window / size.kernel;
    const std::int64_t x = column * size.stride + in_window % size.kernel;
    places[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>((y * size.width + x) * size.channels + i % size.channels);
  }
  return places;
}

std::int64_t image_operand_bytes(const KernelCall& call, std::int64_t element_bytes) {
  const std::vector<std::int64_t>& s = call.shape;
  switch (call.kind) {
    case KernelKind::kConvolutionForward:
    case KernelKind::kConvolutionInputGrad:
    case KernelKind::kConvolutionWeightGrad: {
      const ConvolutionSize size = convolution_size(call.shape);
      return (s[0] * s[1] * s[2] * s[3] + outputs_of(size)) * element_bytes +
             ConvolutionProducts(size, element_bytes).workspace_bytes() +
             size.filters * simt::patch_grid(size).patch * 4;
    }
    case KernelKind::kPoolingForward:
    case KernelKind::kPoolingBackward:
      return s[0] * s[1] * s[2] * s[3] * element_bytes + outputs_of(pooling_size(call.shape)) * (element_bytes + 4);
    default:
      return s[0] * s[1] * (element_bytes + 4) + s[0] * 4 + simt::relu_mask_bytes(s[0] * s[1]);
  }
}

void enqueue_image_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  assert(is_image_kernel(call.kind));
  const std::vector<std::int64_t>& s = call.shape;
  const auto mask = [&] { return reinterpret_cast<std::uint8_t*>(with.bytes(simt::relu_mask_bytes(s[0] * s[1]))); };
  switch (call.kind) {
    case KernelKind::kPoolingForward:
    case KernelKind::kPoolingBackward:
      return enqueue_pooling(kernels, call, with);
    case KernelKind::kReluForward:
      return kernels.relu_forward(with.stored(s[0] * s[1]), mask(), nullptr, s[0], s[1]);
    case KernelKind::kReluBackward:
      return kernels.relu_backward(with.stored(s[0] * s[1]), mask(), s[0] * s[1]);
    case KernelKind::kDropout: {
      std::byte* const values = with.stored(s[0] * s[1]);
      return kernels.dropout(values, values, nullptr, {}, {.count = s[0], .columns = s[1]}, kDropProbability, nullptr);
    }
    case KernelKind::kSquaredError:
      return kernels.squared_error(with.floats(s[0]), with.stored(s[0] * s[1]), with.floats(s[0] * s[1]), s[0], s[1], 1,
                                   nullptr);
    default:
      return enqueue_convolution(kernels, call, with);
  }
}

}}  // namespace plumb::executor
