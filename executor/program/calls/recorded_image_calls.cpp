// Kernels of models of images and vectors, recorded.

#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

void CallRecorder::image_to_patches(void* patches, const void* images, const ConvolutionSize& size,
                                    std::int64_t group) {
  add([=](DeviceKernels& kernels) { kernels.image_to_patches(patches, images, size, group); });
}

void CallRecorder::patches_to_image(void* images, const void* patches, const ConvolutionSize& size,
                                    std::int64_t group) {
  add([=](DeviceKernels& kernels) { kernels.patches_to_image(images, patches, size, group); });
}

void CallRecorder::pooling_forward(void* y, std::int32_t* places, const void* x, const PoolingSize& size) {
  add([=](DeviceKernels& kernels) { kernels.pooling_forward(y, places, x, size); });
}

void CallRecorder::pooling_backward(void* dx, const void* dy, const std::int32_t* places, const PoolingSize& size) {
  add([=](DeviceKernels& kernels) { kernels.pooling_backward(dx, dy, places, size); });
}

void CallRecorder::relu_forward(void* x, std::uint8_t* mask, const float* bias, std::int64_t rows,
                                std::int64_t columns) {
  add([=](DeviceKernels& kernels) { kernels.relu_forward(x, mask, bias, rows, columns); });
}

void CallRecorder::relu_backward(void* dy, const std::uint8_t* mask, std::int64_t elements) {
  add([=](DeviceKernels& kernels) { kernels.relu_backward(dy, mask, elements); });
}

void CallRecorder::squared_error(float* losses, void* y, const float* targets, std::int64_t rows, std::int64_t columns,
                                 float gradient_scale, const float* loss_scale) {
  add([=](DeviceKernels& kernels) {
    kernels.squared_error(losses, y, targets, rows, columns, gradient_scale, loss_scale);
  });
}

}}  // namespace plumb::executor
