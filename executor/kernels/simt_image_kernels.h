#pragma once
// Makes the kernels of models of images and vectors from the bodies of kernels/simt (device/kernels/simt_kernels.h
// defines a Launcher).

#include <cstdint>
#include <utility>

#include "executor/kernels/simt_update_kernels.h"
#include "kernels/simt/activation.h"
#include "kernels/simt/images/patches.h"
#include "kernels/simt/images/pooling.h"
#include "kernels/simt/losses/squared_error.h"
#include "kernels/simt/relu.h"

namespace plumb { inline namespace executor {

template <class S, class Launcher>
class SimtImageKernels : public SimtUpdateKernels<S, Launcher> {
  using Others = SimtUpdateKernels<S, Launcher>;

 protected:
  using Others::launcher_;
  using Others::stored;

 public:
  explicit SimtImageKernels(Launcher launcher) : Others(std::move(launcher)) {}

  void image_to_patches(void* patches, const void* images, const ConvolutionSize& size, std::int64_t group) override {
    const simt::PatchGrid grid = simt::patch_grid(size);
    launcher_.launch_elements(simt::ImageToPatches<S>{stored(patches), stored(images), size, group},
                              size.images * grid.rows * grid.columns * grid.patch);
  }
  void patches_to_image(void* images, const void* patches, const ConvolutionSize& size, std::int64_t group) override {
    launcher_.launch_elements(simt::PatchesToImage<S>{stored(images), stored(patches), size, group},
                              size.images * size.height * size.width * simt::patch_grid(size).channels);
  }

  void pooling_forward(void* y, std::int32_t* places, const void* x, const PoolingSize& size) override {
    launcher_.launch_elements(
        simt::PoolingForward<S>{stored(y), places, stored(x), size},
        size.images * simt::pooled(size.height, size) * simt::pooled(size.width, size) * size.channels);
  }
  void pooling_backward(void* dx, const void* dy, const std::int32_t* places, const PoolingSize& size) override {
    launcher_.launch_elements(simt::PoolingBackward<S>{stored(dx), stored(dy), places, size},
                              size.images * size.height * size.width * size.channels);
  }

  void relu_forward(void* x, std::uint8_t* mask, const float* bias, std::int64_t rows, std::int64_t columns) override {
    launcher_.launch_elements(simt::ReluForward<S>{stored(x), mask, bias, rows, columns},
                              simt::relu_mask_bytes(rows * columns));
  }
  void relu_backward(void* dy, const std::uint8_t* mask, std::int64_t elements) override {
    launcher_.launch_elements(simt::ReluBackward<S>{stored(dy), mask, elements}, elements);
  }

  void squared_error(float* losses, void* y, const float* targets, std::int64_t rows, std::int64_t columns,
                     float gradient_scale, const float* loss_scale) override {
    launcher_.launch(simt::SquaredError<S>{losses, stored(y), targets, rows, columns, gradient_scale, loss_scale}, rows,
                     kErrorLanes);
  }

 private:
  static constexpr int kErrorLanes = 128;
};

}}  // namespace plumb::executor
