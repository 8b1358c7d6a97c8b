#include "kernels/simt/patches.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

using namespace plumb;
using namespace plumb::test;

namespace {

/// y = patches * filters^T, group by group.
Values convolved(const Values& patches, const Values& filters, const ConvolutionSize& size) {
  const simt::PatchGrid grid = simt::patch_grid(size);
  const std::int64_t pixels = grid.rows * grid.columns;
  const std::int64_t filter = grid.patch / size.groups, per_group = size.filters / size.groups;
  Values y(pixels * size.filters);
  for (std::int64_t p = 0; p < pixels; ++p)
    for (std::int64_t f = 0; f < size.filters; ++f) {
      double sum = 0;
      for (std::int64_t e = 0; e < filter; ++e)
        sum += double(patches[p * grid.patch + f / per_group * filter + e]) * double(filters[f * filter + e]);
      y[p * size.filters + f] = static_cast<float>(sum);
    }
  return y;
}

}  // namespace

TEST_CASE("GPU patches make the CPU's convolution, and go back as the transpose") {
  for (const std::int64_t stride : {1, 2}) {
    for (const std::int64_t groups : {1, 3}) {
      const ConvolutionSize size{.images = 1,
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
      const std::int64_t pixels = grid.rows * grid.columns;
      const Values x = random_values(size.height * size.width * size.channels, 1);
      const Values filters = random_values(size.filters * grid.patch / groups, 2);
      Values y(pixels * size.filters), scratch(convolution_scratch_elements(size));
      convolution_forward(y.data(), x.data(), filters.data(), size, scratch.data());

      Values patches(pixels * grid.patch);
      run_on_host(simt::ImageToPatches<float>{patches.data(), x.data(), size}, kBlocks, kLanes);
      CHECK(relative_difference(convolved(patches, filters, size), y) < 1e-5);

      // <patches, z> = <image, back(z)> for every z
      const Values z = random_values(pixels * grid.patch, 3);
      Values back(x.size());
      run_on_host(simt::PatchesToImage<float>{back.data(), z.data(), size}, kBlocks, kLanes);
      CHECK(weighted_sum(z, patches) == doctest::Approx(weighted_sum(back, x)).epsilon(1e-5));
    }
  }
}
