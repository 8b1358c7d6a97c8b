#include "kernels/cpu/images/pooling.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

/// Windows that overlap, with a rest at the edges; that lie side by side; of one pixel.
const PoolingSize kPoolings[] = {{.images = 2, .height = 7, .width = 8, .channels = 3, .kernel = 3, .stride = 2},
                                 {.images = 1, .height = 4, .width = 6, .channels = 2, .kernel = 2, .stride = 2},
                                 {.images = 1, .height = 3, .width = 5, .channels = 1, .kernel = 1, .stride = 1}};

std::int64_t pooling_input_count(const PoolingSize& size) {
  return size.images * size.height * size.width * size.channels;
}

/// Returns the values under each window, in the order of the output: [output][kernel * kernel].
std::vector<Values> windows(const Values& x, const PoolingSize& size) {
  std::vector<Values> all;
  for (std::int64_t image = 0; image < size.images; ++image)
    for (std::int64_t row = 0; row + size.kernel <= size.height; row += size.stride)
      for (std::int64_t column = 0; column + size.kernel <= size.width; column += size.stride)
        for (std::int64_t c = 0; c < size.channels; ++c) {
          Values& window = all.emplace_back();
          for (std::int64_t y = row; y < row + size.kernel; ++y)
            for (std::int64_t at = column; at < column + size.kernel; ++at)
              window.push_back(x[((image * size.height + y) * size.width + at) * size.channels + c]);
        }
  return all;
}

Values plain_max(const Values& x, const PoolingSize& size) {
  Values y;
  for (const Values& window : windows(x, size)) y.push_back(*std::ranges::max_element(window));
  return y;
}

Values plain_average(const Values& x, const PoolingSize& size) {
  Values y;
  for (const Values& window : windows(x, size)) {
    double sum = 0;
    for (const float value : window) sum += double(value);
    y.push_back(static_cast<float>(sum / double(window.size())));
  }
  return y;
}

/// Returns values that differ by more than a finite difference's step, so that no step changes which is the largest.
Values spread_values(std::int64_t count) {
  Values values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[i] = 0.05F * static_cast<float>((i * 37) % count) - 3.0F;
  return values;
}

}  // namespace

TEST_CASE("pooling gives the largest and the mean of each window") {
  for (const PoolingSize& size : kPoolings) {
    const Values x = random_values(pooling_input_count(size), 1);
    Values y(plain_max(x, size).size());
    std::vector<std::int32_t> places(y.size());
    max_pooling_forward(y.data(), places.data(), x.data(), size);
    CHECK(y == plain_max(x, size));
    average_pooling_forward(y.data(), x.data(), size);
    CHECK(relative_difference(y, plain_average(x, size)) < 1e-6);
  }
}

TEST_CASE("the gradients of both poolings agree with finite differences") {
  for (const PoolingSize& size : kPoolings) {
    Values x = spread_values(pooling_input_count(size)), y(plain_max(x, size).size()), dx(x.size(), 7.0F);
    std::vector<std::int32_t> places(y.size());
    const Values dy = random_values(static_cast<std::int64_t>(y.size()), 3);
    max_pooling_forward(y.data(), places.data(), x.data(), size);
    max_pooling_backward(dx.data(), dy.data(), places.data(), size);
    CHECK(gradient_error(x, dx, [&] { return weighted_sum(dy, plain_max(x, size)); }) < kGradientTolerance);
    average_pooling_backward(dx.data(), dy.data(), size);
    CHECK(gradient_error(x, dx, [&] { return weighted_sum(dy, plain_average(x, size)); }) < kGradientTolerance);
  }
}

TEST_CASE("of equal values the first of a window is the largest") {
  const PoolingSize size{.images = 1, .height = 2, .width = 2, .channels = 1, .kernel = 2, .stride = 1};
  const Values x(4, 1.5F);
  float y = 0;
  std::int32_t place = -1;
  max_pooling_forward(&y, &place, x.data(), size);
  CHECK(place == 0);
}

}  // namespace plumb::test
