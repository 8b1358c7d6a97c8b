#include "tests/executor/kernels/kernel_cases.h"

namespace plumb::test {
namespace {

std::int64_t places_of(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return (extent + 2 * padding - kernel) / stride + 1;
}

CaseCall patches(KernelOperands& with) {
  ConvolutionSize size{
      .images = with.size(1, 3), .kernel = with.size(1, 4), .stride = with.size(1, 3), .groups = with.size(1, 3)};
  size.padding = with.size(0, size.kernel - 1);
  size.height = size.kernel + with.size(0, 9);
  size.width = size.kernel + with.size(0, 9);
  size.channels = size.groups * with.size(1, 9);
  size.filters = size.groups;
  const std::int64_t group = with.size(0, size.groups - 1);
  const std::int64_t pixels = places_of(size.height, size.kernel, size.stride, size.padding) *
                              places_of(size.width, size.kernel, size.stride, size.padding);
  const std::int64_t all = size.images * pixels * size.kernel * size.kernel * size.channels / size.groups;
  const std::int64_t image = size.images * size.height * size.width * size.channels;
  const void *images = with.stored(image), *dpatches = with.stored(all);
  void *made = with.stored_room(all), *dimages = with.stored(image);
  return [=](DeviceKernels& kernels) {
    kernels.image_to_patches(made, images, size, group);
    kernels.patches_to_image(dimages, dpatches, size, group);
  };
}

CaseCall pooling(KernelOperands& with) {
  PoolingSize size{
      .images = with.size(1, 3), .channels = with.size(1, 20), .kernel = with.size(1, 4), .stride = with.size(1, 3)};
  size.height = size.kernel + with.size(0, 9);
  size.width = size.kernel + with.size(0, 9);
  const std::int64_t pixels =
      places_of(size.height, size.kernel, size.stride, 0) * places_of(size.width, size.kernel, size.stride, 0);
  const std::int64_t outputs = size.images * pixels * size.channels;
  const std::int64_t inputs = size.images * size.height * size.width * size.channels;
  std::int32_t* places = with.coin() ? with.integer_room(outputs) : nullptr;
  const void *x = with.stored(inputs), *dy = with.stored(outputs);
  void *y = with.stored_room(outputs), *dx = with.stored_room(inputs);
  return [=](DeviceKernels& kernels) {
    kernels.pooling_forward(y, places, x, size);
    kernels.pooling_backward(dx, dy, places, size);
  };
}

CaseCall relu(KernelOperands& with) {
  const std::int64_t rows = with.size(1, 60), columns = with.size(1, 90), elements = rows * columns;
  void *x = with.stored(elements), *dy = with.stored(elements);
  std::uint8_t* mask = with.bytes((elements + 7) / 8);
  const float* bias = with.coin() ? with.floats(columns) : nullptr;
  return [=](DeviceKernels& kernels) {
    kernels.relu_forward(x, mask, bias, rows, columns);
    kernels.relu_backward(dy, mask, elements);
  };
}

CaseCall squared_error(KernelOperands& with) {
  const std::int64_t rows = with.size(1, 40), columns = with.size(1, 400);
  void* y = with.stored(rows * columns);
  const float* targets = with.floats(rows * columns);
  const float* loss_scale = with.coin() ? with.floats_of(std::vector<float>{8}) : nullptr;
  float* losses = with.float_room(rows);
  return [=](DeviceKernels& kernels) { kernels.squared_error(losses, y, targets, rows, columns, 0.5F, loss_scale); };
}

}  // namespace

void append_image_cases(std::vector<KernelCase>& cases) {
  cases.insert(
      cases.end(),
      {{"patches of images", patches}, {"pooling", pooling}, {"ReLU", relu}, {"squared error", squared_error}});
}

}  // namespace plumb::test
