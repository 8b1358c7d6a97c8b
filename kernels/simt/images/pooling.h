#pragma once
// Pooling on a GPU (kernels/cpu/images/pooling.h). In the backward each input pixel gathers from the windows that it
// lies in, in ascending order, so that overlapping windows need no atomics.

#include "kernels/cpu/images/pooling.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Returns the output pixels along a side.
PLUMB_SIMT std::int64_t pooled(std::int64_t extent, const PoolingSize& size) {
  return (extent - size.kernel) / size.stride + 1;
}

/// y = the largest element of each window, or the mean if `places` is null. y: [b, P, C], x: [b, H, W, C]; places: [b,
/// P, C], the place of the largest element in its image
template <class S>
struct PoolingForward {
  S* y;
  std::int32_t* places;
  const S* x;
  PoolingSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t rows = pooled(size.height, size);
    const std::int64_t columns = pooled(size.width, size);
    for_each_element(thread, size.images * rows * columns * size.channels, [&](std::int64_t i) {
      const std::int64_t channel = i % size.channels;
      const std::int64_t column = i / size.channels % columns;
      const std::int64_t row = i / (size.channels * columns) % rows;
      const std::int64_t image = i / (size.channels * columns * rows);
      const S* from = x + image * size.height * size.width * size.channels;
      const std::int64_t first = (row * size.stride * size.width + column * size.stride) * size.channels + channel;
      float largest = widened(from[first]);
      float sum = 0;
      std::int64_t place = first;
      for (std::int64_t ky = 0; ky < size.kernel; ++ky) {
        for (std::int64_t kx = 0; kx < size.kernel; ++kx) {
          const std::int64_t pixel = first + (ky * size.width + kx) * size.channels;
          const float value = widened(from[pixel]);
          sum += value;
          if (!(value > largest)) continue;
          largest = value;
          place = pixel;
        }
      }
      if (places != nullptr) places[i] = static_cast<std::int32_t>(place);
      store(y[i], places != nullptr ? largest : sum / static_cast<float>(size.kernel * size.kernel));
    });
  }
};

/// Writes the input's gradient, for pooling by the mean if `places` is null. dx: [b, H, W, C] (overwritten); dy,
/// places: [b, P, C]
template <class S>
struct PoolingBackward {
  S* dx;
  const S* dy;
  const std::int32_t* places;
  PoolingSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t rows = pooled(size.height, size);
    const std::int64_t columns = pooled(size.width, size);
    const std::int64_t pixels = size.height * size.width;
    for_each_element(thread, size.images * pixels * size.channels, [&](std::int64_t i) {
      const std::int64_t channel = i % size.channels;
      const std::int64_t x = i / size.channels % size.width;
      const std::int64_t y = i / (size.channels * size.width) % size.height;
      const std::int64_t image = i / (size.channels * pixels);
      const std::int64_t place = (y * size.width + x) * size.channels + channel;
      float sum = 0;
      for (std::int64_t row = first_window(y); row * size.stride <= y && row < rows; ++row) {
        for (std::int64_t column = first_window(x); column * size.stride <= x && column < columns; ++column) {
          const std::int64_t window = ((image * rows + row) * columns + column) * size.channels + channel;
          if (places == nullptr || places[window] == place) sum += widened(dy[window]);
        }
      }
      store(dx[i], places != nullptr ? sum : sum / static_cast<float>(size.kernel * size.kernel));
    });
  }

 private:
  /// Returns the first window that reaches a row or column.
  PLUMB_SIMT std::int64_t first_window(std::int64_t at) const {
    return at < size.kernel ? 0 : (at - size.kernel) / size.stride + 1;
  }
};

}}}  // namespace plumb::kernels::simt
