#pragma once
// The number of images that a convolution on a device takes at once. Their windows become rows of patches (im2col),
// which are multiplied with the filters.

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/images/convolution.h"
#include "kernels/simt/images/patches.h"

namespace plumb { inline namespace executor {

/// The bytes of patches that one product takes; one image may have more.
inline constexpr std::int64_t kPatchBytes = std::int64_t{16} << 20;

/// True if a window is one pixel, so that there are no patches to cut out.
inline bool patches_are_images(const ConvolutionSize& size) {
  return size.kernel == 1 && size.stride == 1 && size.padding == 0 && size.groups == 1;
}

/// Returns the bytes of the patches of an image, for one group's channels.
inline std::int64_t patch_bytes_of_image(const ConvolutionSize& size, std::int64_t element_bytes) {
  const simt::PatchGrid grid = simt::patch_grid(size);
  return std::max<std::int64_t>(1, grid.rows * grid.columns * grid.patch * element_bytes);
}

/// Returns the images of one product, at least 1.
inline std::int64_t images_of_chunk(const ConvolutionSize& size, std::int64_t element_bytes) {
  return std::clamp<std::int64_t>(kPatchBytes / patch_bytes_of_image(size, element_bytes), 1,
                                  std::max<std::int64_t>(1, size.images));
}

}}  // namespace plumb::executor
