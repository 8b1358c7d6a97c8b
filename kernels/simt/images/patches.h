#pragma once
// im2col and its transpose on a GPU, which surround the products of a convolution (kernels/cpu/images/convolution.h).
// They take one group at a time, and all images of a call at once.
//
//   patches [b, P, K, K, C/G] of one group's channels of images [b, H, W, C]

#include "kernels/cpu/images/convolution.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// The windows of an image.
struct PatchGrid {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t channels;  ///< C/G
  std::int64_t patch;     ///< elements of a pixel's patch: K K C/G
};

PLUMB_SIMT PatchGrid patch_grid(const ConvolutionSize& size) {
  return {.rows = (size.height + 2 * size.padding - size.kernel) / size.stride + 1,
          .columns = (size.width + 2 * size.padding - size.kernel) / size.stride + 1,
          .channels = size.channels / size.groups,
          .patch = size.channels / size.groups * size.kernel * size.kernel};
}

/// Cuts the patches out; the padding becomes zeros. patches: [b, P, K, K, C/G]; images: [b, H, W, C]
template <class S>
struct ImageToPatches {
  S* patches;
  const S* images;
  ConvolutionSize size;
  std::int64_t group;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const PatchGrid grid = patch_grid(size);
    const std::int64_t pixels = grid.rows * grid.columns;
    for_each_element(thread, size.images * pixels * grid.patch, [&](std::int64_t i) {
      const std::int64_t channel = i % grid.channels;
      const std::int64_t kx = i / grid.channels % size.kernel;
      const std::int64_t ky = i / (grid.channels * size.kernel) % size.kernel;
      const std::int64_t pixel = i / grid.patch % pixels;
      const std::int64_t image = i / (grid.patch * pixels);
      const std::int64_t y = pixel / grid.columns * size.stride + ky - size.padding;
      const std::int64_t x = pixel % grid.columns * size.stride + kx - size.padding;
      const bool inside = y >= 0 && y < size.height && x >= 0 && x < size.width;
      const std::int64_t from =
          ((image * size.height + y) * size.width + x) * size.channels + group * grid.channels + channel;
      store(patches[i], inside ? widened(images[from]) : 0.0F);
    });
  }
};

/// Sets each element of the group's channels of the images to the sum of the patches over it, in ascending order of
/// patches.
template <class S>
struct PatchesToImage {
  S* images;
  const S* patches;
  ConvolutionSize size;
  std::int64_t group;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const PatchGrid grid = patch_grid(size);
    const std::int64_t area = size.height * size.width;
    for_each_element(thread, size.images * area * grid.channels, [&](std::int64_t i) {
      const std::int64_t channel = i % grid.channels;
      const std::int64_t x = i / grid.channels % size.width + size.padding;
      const std::int64_t y = i / (grid.channels * size.width) % size.height + size.padding;
      const std::int64_t image = i / (grid.channels * area);
      float sum = 0;
      for (std::int64_t row = first_window(y); row * size.stride <= y && row < grid.rows; ++row) {
        for (std::int64_t column = first_window(x); column * size.stride <= x && column < grid.columns; ++column) {
          const std::int64_t tap = (y - row * size.stride) * size.kernel + x - column * size.stride;
          const std::int64_t pixel = (image * grid.rows + row) * grid.columns + column;
          sum += widened(patches[pixel * grid.patch + tap * grid.channels + channel]);
        }
      }
      store(images[i / grid.channels * size.channels + group * grid.channels + channel], sum);
    });
  }

 private:
  PLUMB_SIMT std::int64_t first_window(std::int64_t at) const {
    return at < size.kernel ? 0 : (at - size.kernel) / size.stride + 1;
  }
};

}}}  // namespace plumb::kernels::simt
