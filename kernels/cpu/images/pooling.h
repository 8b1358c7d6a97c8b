#pragma once
// Pooling over the windows of an image, channel by channel. KernelKind kPoolingForward and kPoolingBackward. Images are
// [height, width, channels]; windows lie inside the image and may overlap.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// The shape of KernelKind kPoolingForward without the kind of pooling, which the function's name says.
struct PoolingSize {
  std::int64_t images = 0;    ///< b
  std::int64_t height = 0;    ///< H rows of the input
  std::int64_t width = 0;     ///< W columns of the input
  std::int64_t channels = 0;  ///< C
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
};

/// y = the largest of each window; places holds its element in its image, the first of equal ones. x: [b, H, W, C]; y,
/// places: [b, P, C] with P output pixels
void max_pooling_forward(float* y, std::int32_t* places, const float* x, const PoolingSize& size);

/// Adds dy to the places of the largest elements. dx: [b, H, W, C] (overwritten); dy, places: [b, P, C]
void max_pooling_backward(float* dx, const float* dy, const std::int32_t* places, const PoolingSize& size);

/// y = the mean of each window. x: [b, H, W, C], y: [b, P, C]
void average_pooling_forward(float* y, const float* x, const PoolingSize& size);

/// Adds dy / K^2 to each element of its window. dx: [b, H, W, C] (overwritten); dy: [b, P, C]
void average_pooling_backward(float* dx, const float* dy, const PoolingSize& size);

}}  // namespace plumb::kernels
