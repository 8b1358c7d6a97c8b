#include "kernels/simt/images/pooling.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_pooling(bool largest, const PoolingSize& size) {
  const std::int64_t outputs =
      size.images * simt::pooled(size.height, size) * simt::pooled(size.width, size) * size.channels;
  const std::vector<S> x = stored<S>(random_values(size.images * size.height * size.width * size.channels, 1)),
                       dy = stored<S>(random_values(outputs, 2));
  Values y(outputs), dx(x.size());
  std::vector<std::int32_t> places(outputs), own_places(outputs);
  if (largest) {
    max_pooling_forward(y.data(), places.data(), widened_all(x).data(), size);
    max_pooling_backward(dx.data(), widened_all(dy).data(), places.data(), size);
  } else {
    average_pooling_forward(y.data(), widened_all(x).data(), size);
    average_pooling_backward(dx.data(), widened_all(dy).data(), size);
  }
  std::vector<S> own_y(outputs), own_dx(x.size());
  std::int32_t* places_or_null = largest ? own_places.data() : nullptr;
  run_on_host(simt::PoolingForward<S>{own_y.data(), places_or_null, x.data(), size}, kBlocks, kLanes);
  run_on_host(simt::PoolingBackward<S>{own_dx.data(), dy.data(), places_or_null, size}, kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_y), y) < tolerance<S>());
  CHECK(relative_difference(widened_all(own_dx), dx) < tolerance<S>());
  if (largest) CHECK(own_places == places);
}

}  // namespace

TEST_CASE("GPU pooling agrees with the CPU's, with windows that overlap, touch, or leave gaps") {
  for (const bool largest : {true, false}) {
    for (const std::int64_t stride : {1, 2, 3, 4}) {
      const PoolingSize size{.images = 2, .height = 11, .width = 8, .channels = 5, .kernel = 3, .stride = stride};
      CAPTURE(largest);
      CAPTURE(stride);
      check_pooling<float>(largest, size);
      check_pooling<Bf16>(largest, size);
    }
  }
}

}  // namespace plumb::test
