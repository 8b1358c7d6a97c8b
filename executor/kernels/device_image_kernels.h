#pragma once
// The GPU kernels of models that read images, or vectors of numbers, as their layers call them, beyond those of
// device_kernels.h: the copies around a convolution's products, pooling, activations, a squared error. Images are [b,
// H, W, C]; P output pixels.

#include <cstdint>

#include "kernels/cpu/images/convolution.h"
#include "kernels/cpu/images/pooling.h"

namespace plumb { inline namespace executor {

class DeviceImageKernels {
 public:
  virtual ~DeviceImageKernels() = default;

  /// Cut images into patches, and add patches up to images, for one group's channels. patches: [b, P, K, K, C/G]; of
  /// `images` the second writes only the group's channels.
  virtual void image_to_patches(void* patches, const void* images, const ConvolutionSize& size, std::int64_t group) = 0;
  virtual void patches_to_image(void* images, const void* patches, const ConvolutionSize& size, std::int64_t group) = 0;

  /// Pool by the largest element, or by the mean if `places` is null. y: [b, P, C]; places: [b, P, C], the place of the
  /// largest
  virtual void pooling_forward(void* y, std::int32_t* places, const void* x, const PoolingSize& size) = 0;
  virtual void pooling_backward(void* dx, const void* dy, const std::int32_t* places, const PoolingSize& size) = 0;

  /// x := max(x + bias, 0), in place; bias: [columns] or null; mask: a bit an element (kernels/simt/relu.h)
  virtual void relu_forward(void* x, std::uint8_t* mask, const float* bias, std::int64_t rows,
                            std::int64_t columns) = 0;
  virtual void relu_backward(void* dy, const std::uint8_t* mask, std::int64_t elements) = 0;

  /// Writes the loss of each row, and replaces y [rows, columns] by its gradient times `gradient_scale` and the loss
  /// scale (null: 1). losses: [rows]
  virtual void squared_error(float* losses, void* y, const float* targets, std::int64_t rows, std::int64_t columns,
                             float gradient_scale, const float* loss_scale) = 0;
};

}}  // namespace plumb::executor
