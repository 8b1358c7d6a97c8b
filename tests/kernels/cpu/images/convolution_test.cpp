#include "kernels/cpu/images/convolution.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

/// Sizes that are odd in every way: overlapping, padded, strided past the edge, in groups.
const ConvolutionSize kConvolutions[] = {
    {.images = 2, .height = 5, .width = 7, .channels = 3, .filters = 4, .kernel = 3, .stride = 1, .padding = 1},
    {.images = 1, .height = 9, .width = 6, .channels = 4, .filters = 6, .kernel = 3, .stride = 2, .groups = 2},
    {.images = 3, .height = 4, .width = 4, .channels = 1, .filters = 1, .kernel = 4, .stride = 3, .padding = 2},
    {.images = 1, .height = 3, .width = 3, .channels = 5, .filters = 2, .kernel = 1},
};

std::int64_t rows_of(const ConvolutionSize& size) {
  return (size.height + 2 * size.padding - size.kernel) / size.stride + 1;
}
std::int64_t columns_of(const ConvolutionSize& size) {
  return (size.width + 2 * size.padding - size.kernel) / size.stride + 1;
}
std::int64_t input_count(const ConvolutionSize& size) {
  return size.images * size.height * size.width * size.channels;
}
std::int64_t output_count(const ConvolutionSize& size) {
  return size.images * rows_of(size) * columns_of(size) * size.filters;
}
std::int64_t filter_count(const ConvolutionSize& size) {
  return size.filters * size.kernel * size.kernel * size.channels / size.groups;
}

/// Convolves by the definition, one loop an index.
Values plain_convolution(const Values& x, const Values& filters, const ConvolutionSize& size) {
  Values y;
  const std::int64_t group_channels = size.channels / size.groups, group_filters = size.filters / size.groups;
  for (std::int64_t image = 0; image < size.images; ++image)
    for (std::int64_t row = 0; row < rows_of(size); ++row)
      for (std::int64_t column = 0; column < columns_of(size); ++column)
        for (std::int64_t filter = 0; filter < size.filters; ++filter) {
          double sum = 0;
          for (std::int64_t ky = 0; ky < size.kernel; ++ky)
            for (std::int64_t kx = 0; kx < size.kernel; ++kx)
              for (std::int64_t c = 0; c < group_channels; ++c) {
                const std::int64_t in_row = row * size.stride + ky - size.padding;
                const std::int64_t in_column = column * size.stride + kx - size.padding;
                if (in_row < 0 || in_row >= size.height || in_column < 0 || in_column >= size.width) continue;
                const std::int64_t channel = filter / group_filters * group_channels + c;
                sum += double(x[((image * size.height + in_row) * size.width + in_column) * size.channels + channel]) *
                       double(filters[((filter * size.kernel + ky) * size.kernel + kx) * group_channels + c]);
              }
          y.push_back(static_cast<float>(sum));
        }
  return y;
}

}  // namespace

TEST_CASE("convolution is its definition, padded, strided and in groups") {
  for (const ConvolutionSize& size : kConvolutions) {
    const Values x = random_values(input_count(size), 1), filters = random_values(filter_count(size), 2);
    Values y(output_count(size)), scratch(convolution_scratch_elements(size));
    convolution_forward(y.data(), x.data(), filters.data(), size, scratch.data());
    CHECK(relative_difference(y, plain_convolution(x, filters, size)) < 1e-5);
  }
}

TEST_CASE("the gradients of a convolution agree with finite differences") {
  for (const ConvolutionSize& size : kConvolutions) {
    Values x = random_values(input_count(size), 1), filters = random_values(filter_count(size), 2);
    const Values dy = random_values(output_count(size), 3);
    Values dx(x.size(), 7.0F), dfilters(filters.size()), scratch(convolution_scratch_elements(size));
    convolution_input_grad(dx.data(), dy.data(), filters.data(), size, scratch.data());
    convolution_weight_grad(dfilters.data(), dy.data(), x.data(), size, scratch.data());
    const auto objective = [&] { return weighted_sum(dy, plain_convolution(x, filters, size)); };
    CHECK(gradient_error(x, dx, objective) < kGradientTolerance);
    CHECK(gradient_error(filters, dfilters, objective) < kGradientTolerance);
  }
}

TEST_CASE("the filters' gradient is added to what is there") {
  const ConvolutionSize& size = kConvolutions[0];
  const Values x = random_values(input_count(size), 1), dy = random_values(output_count(size), 3);
  Values once(filter_count(size)), twice(filter_count(size)), scratch(convolution_scratch_elements(size));
  convolution_weight_grad(once.data(), dy.data(), x.data(), size, scratch.data());
  for (int i = 0; i < 2; ++i) convolution_weight_grad(twice.data(), dy.data(), x.data(), size, scratch.data());
  for (float& value : once) value *= 2;
  CHECK(relative_difference(twice, once) < 1e-6);
}

}  // namespace plumb::test
