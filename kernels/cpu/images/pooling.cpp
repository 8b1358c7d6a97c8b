#include "kernels/cpu/images/pooling.h"

#include <algorithm>

namespace plumb { inline namespace kernels {
namespace {

std::int64_t image_elements(const PoolingSize& size) {
  return size.height * size.width * size.channels;
}

/// Calls visit(image, output, first) for each window. `output` is the element of the window's channel 0 among all
/// results, and `first` the element of channel 0 of the window's first pixel in its image.
template <class Visit>
void for_each_window(const PoolingSize& size, Visit visit) {
  const std::int64_t rows = (size.height - size.kernel) / size.stride + 1;
  const std::int64_t columns = (size.width - size.kernel) / size.stride + 1;
  std::int64_t output = 0;
  for (std::int64_t image = 0; image < size.images; ++image)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column, output += size.channels)
        visit(image, output, (row * size.stride * size.width + column * size.stride) * size.channels);
}

}  // namespace

void max_pooling_forward(float* y, std::int32_t* places, const float* x, const PoolingSize& size) {
  for_each_window(size, [&](std::int64_t image, std::int64_t output, std::int64_t first) {
    const float* from = x + image * image_elements(size);
    for (std::int64_t c = 0; c < size.channels; ++c) {
      y[output + c] = from[first + c];
      places[output + c] = static_cast<std::int32_t>(first + c);
    }
    for (std::int64_t ky = 0; ky < size.kernel; ++ky)
      for (std::int64_t kx = 0; kx < size.kernel; ++kx) {
        const std::int64_t pixel = first + (ky * size.width + kx) * size.channels;
        for (std::int64_t c = 0; c < size.channels; ++c) {
          if (!(from[pixel + c] > y[output + c])) continue;
          y[output + c] = from[pixel + c];
          places[output + c] = static_cast<std::int32_t>(pixel + c);
        }
      }
  });
}

void max_pooling_backward(float* dx, const float* dy, const std::int32_t* places, const PoolingSize& size) {
  std::fill_n(dx, size.images * image_elements(size), 0.0F);
  for_each_window(size, [&](std::int64_t image, std::int64_t output, std::int64_t) {
    float* to = dx + image * image_elements(size);
    for (std::int64_t c = 0; c < size.channels; ++c) to[places[output + c]] += dy[output + c];
  });
}

void average_pooling_forward(float* y, const float* x, const PoolingSize& size) {
  const float share = 1.0F / static_cast<float>(size.kernel * size.kernel);
  for_each_window(size, [&](std::int64_t image, std::int64_t output, std::int64_t first) {
    const float* from = x + image * image_elements(size) + first;
    std::fill_n(y + output, size.channels, 0.0F);
    for (std::int64_t ky = 0; ky < size.kernel; ++ky)
      for (std::int64_t kx = 0; kx < size.kernel; ++kx)
        for (std::int64_t c = 0; c < size.channels; ++c)
          y[output + c] += share * from[(ky * size.width + kx) * size.channels + c];
  });
}

void average_pooling_backward(float* dx, const float* dy, const PoolingSize& size) {
  const float share = 1.0F / static_cast<float>(size.kernel * size.kernel);
  std::fill_n(dx, size.images * image_elements(size), 0.0F);
  for_each_window(size, [&](std::int64_t image, std::int64_t output, std::int64_t first) {
    float* to = dx + image * image_elements(size) + first;
    for (std::int64_t ky = 0; ky < size.kernel; ++ky)
      for (std::int64_t kx = 0; kx < size.kernel; ++kx)
        for (std::int64_t c = 0; c < size.channels; ++c)
          to[(ky * size.width + kx) * size.channels + c] += share * dy[output + c];
  });
}

}}  // namespace plumb::kernels
