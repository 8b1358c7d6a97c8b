#pragma once
// How many images a convolution on a device takes at once: their windows become rows of patches (im2col), and these are
// multiplied with the filters.

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/images/convolution.h"
#include "kernels/simt/images/patches.h"

namespace plumb { inline namespace executor {

/// Of patches, where that is more than one image's: what a product takes at once.
inline constexpr std::int64_t kPatchBytes = std::int64_t{16} << 20;

/// Windows of one pixel: nothing to cut out.
inline bool patches_are_images(const ConvolutionSize& size) {
  return size.kernel == 1 && size.stride == 1 && size.padding == 0 && size.groups == 1;
}

/// Bytes of the patches of an image, of one group's channels.
inline std::int64_t patch_bytes_of_image(const ConvolutionSize& size, std::int64_t element_bytes) {
  const simt::PatchGrid grid = simt::patch_grid(size);
  return std::max<std::int64_t>(1, grid.rows * grid.columns * grid.patch * element_bytes);
}

/// At least 1.
inline std::int64_t images_of_chunk(const ConvolutionSize& size, std::int64_t element_bytes) {
  return std::clamp<std::int64_t>(kPatchBytes / patch_bytes_of_image(size, element_bytes), 1,
                                  std::max<std::int64_t>(1, size.images));
}

}}  // namespace plumb::executor
