#pragma once
// im2col and its transpose on a GPU: what is around the products of a convolution (kernels/cpu/convolution.h).
//
//   patches [P, G, K, K, C/G] of one image [H, W, C]

#include "kernels/cpu/convolution.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb::simt {

/// Where an image's windows are.
struct PatchGrid {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t group_channels;  ///< C/G
  std::int64_t patch;           ///< elements of a pixel's patch: G K K C/G
};

PLUMB_SIMT PatchGrid patch_grid(const ConvolutionSize& size) {
  return {.rows = (size.height + 2 * size.padding - size.kernel) / size.stride + 1,
          .columns = (size.width + 2 * size.padding - size.kernel) / size.stride + 1,
          .group_channels = size.channels / size.groups,
          .patch = size.channels * size.kernel * size.kernel};
}

/// Cuts the patches out; the padding is zeros. patches: [P, G, K, K, C/G]; image: [H, W, C]
template <class S>
struct ImageToPatches {
  S* patches;
  const S* image;
  ConvolutionSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const PatchGrid grid = patch_grid(size);
    for_each_element(thread, grid.rows * grid.columns * grid.patch, [&](std::int64_t i) {
      const std::int64_t channel = i % grid.group_channels;
      const std::int64_t kx = i / grid.group_channels % size.kernel;
      const std::int64_t ky = i / (grid.group_channels * size.kernel) % size.kernel;
      const std::int64_t group = i / (grid.group_channels * size.kernel * size.kernel) % size.groups;
      const std::int64_t pixel = i / grid.patch;
      const std::int64_t y = pixel / grid.columns * size.stride + ky - size.padding;
      const std::int64_t x = pixel % grid.columns * size.stride + kx - size.padding;
      const bool inside = y >= 0 && y < size.height && x >= 0 && x < size.width;
      const std::int64_t from = (y * size.width + x) * size.channels + group * grid.group_channels + channel;
      store(patches[i], inside ? widened(image[from]) : 0.0F);
    });
  }
};

/// image = the sum of the patches over each of its elements, in ascending order of patches.
template <class S>
struct PatchesToImage {
  S* image;
  const S* patches;
  ConvolutionSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const PatchGrid grid = patch_grid(size);
    for_each_element(thread, size.height * size.width * size.channels, [&](std::int64_t i) {
      const std::int64_t channel = i % size.channels;
      const std::int64_t x = i / size.channels % size.width + size.padding;
      const std::int64_t y = i / (size.channels * size.width) + size.padding;
      const std::int64_t in_patch = channel / grid.group_channels * size.kernel * size.kernel * grid.group_channels +
                                    channel % grid.group_channels;
      float sum = 0;
      for (std::int64_t row = first_window(y); row * size.stride <= y && row < grid.rows; ++row) {
        for (std::int64_t column = first_window(x); column * size.stride <= x && column < grid.columns; ++column) {
          const std::int64_t tap = (y - row * size.stride) * size.kernel + x - column * size.stride;
          sum += widened(patches[(row * grid.columns + column) * grid.patch + in_patch + tap * grid.group_channels]);
        }
      }
      store(image[i], sum);
    });
  }

 private:
  PLUMB_SIMT std::int64_t first_window(std::int64_t at) const {
    return at < size.kernel ? 0 : (at - size.kernel) / size.stride + 1;
  }
};

}  // namespace plumb::simt
