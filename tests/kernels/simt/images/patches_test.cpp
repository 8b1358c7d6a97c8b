#include "kernels/simt/images/patches.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

/// Computes the group's columns of y = its patches * its filters^T.
void convolve(Values& y, const Values& patches, const Values& filters, const ConvolutionSize& size,
              std::int64_t group) {
  const simt::PatchGrid grid = simt::patch_grid(size);
  const std::int64_t pixels = size.images * grid.rows * grid.columns, per_group = size.filters / size.groups;
  for (std::int64_t p = 0; p < pixels; ++p)
    for (std::int64_t f = group * per_group; f < (group + 1) * per_group; ++f) {
      double sum = 0;
      for (std::int64_t e = 0; e < grid.patch; ++e)
        sum += double(patches[p * grid.patch + e]) * double(filters[f * grid.patch + e]);
      y[p * size.filters + f] = static_cast<float>(sum);
    }
}

}  // namespace

TEST_CASE("GPU patches make the CPU's convolution, and go back as the transpose") {
  for (const std::int64_t stride : {1, 2}) {
    for (const std::int64_t groups : {1, 3}) {
      const ConvolutionSize size{.images = 2,
                                 .height = 7,
                                 .width = 9,
                                 .channels = 6,
                                 .filters = 9,
                                 .kernel = 3,
                                 .stride = stride,
                                 .padding = 1,
                                 .groups = groups};
      CAPTURE(stride);
      CAPTURE(groups);
      const simt::PatchGrid grid = simt::patch_grid(size);
      const std::int64_t pixels = size.images * grid.rows * grid.columns;
      const Values x = random_values(size.images * size.height * size.width * size.channels, 1);
      const Values filters = random_values(size.filters * grid.patch, 2);
      Values y(pixels * size.filters), scratch(convolution_scratch_elements(size));
      convolution_forward(y.data(), x.data(), filters.data(), size, scratch.data());

      Values own_y(y.size()), back(x.size());
      double of_patches = 0;
      for (std::int64_t group = 0; group < groups; ++group) {
        Values patches(pixels * grid.patch);
        run_on_host(simt::ImageToPatches<float>{patches.data(), x.data(), size, group}, kBlocks, kLanes);
        convolve(own_y, patches, filters, size, group);
        // <patches, z> = <image, back(z)> must hold for every z.
        const Values z = random_values(pixels * grid.patch, 3 + static_cast<int>(group));
        run_on_host(simt::PatchesToImage<float>{back.data(), z.data(), size, group}, kBlocks, kLanes);
        of_patches += weighted_sum(z, patches);
      }
      CHECK(relative_difference(own_y, y) < 1e-5);
      CHECK(of_patches == doctest::Approx(weighted_sum(back, x)).epsilon(1e-5));
    }
  }
}

}  // namespace plumb::test
