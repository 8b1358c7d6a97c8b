#include "executor/transport/tensor_pool.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace plumb::test {

TEST_CASE("a pool counts what is live and what was live at the peak") {
  TensorPool pool;
  Tensor a = pool.take(10);
  {
    const Tensor b = pool.take(5);
    CHECK(pool.live_bytes() == 60);
  }
  CHECK(pool.live_bytes() == 40);
  CHECK(pool.peak_bytes() == 60);
  pool.reset_peak();
  CHECK(pool.peak_bytes() == 40);
  a = {};
  CHECK(pool.live_bytes() == 0);
}

TEST_CASE("memory that was given back serves the next tensor of its size") {
  TensorPool pool;
  for (int i = 0; i < 10; ++i) {
    const Tensor a = pool.take(10), b = pool.take(10), c = pool.take(7);
  }
  CHECK(pool.allocations() == 3);
}

TEST_CASE("a tensor whose size is another each time finds its block again, and only its own bytes are live") {
  TensorPool pool;
  for (const std::int64_t elements : {3, 10, 1, 7}) {
    const Tensor a = pool.take_within(elements, 10);
    CHECK(a.elements() == elements);
    CHECK(pool.live_bytes() == 4 * elements);
    const Tensor copy = pool.take_copy(a);
    CHECK(copy.block_bytes() == 40);
  }
  CHECK(pool.allocations() == 2);
  CHECK(pool.live_bytes() == 0);
}

TEST_CASE("a moved tensor is empty and its memory is given back once") {
  TensorPool pool;
  Tensor a = pool.take_zeros(3);
  Tensor b = std::move(a);
  CHECK(a.empty());  // NOLINT(bugprone-use-after-move)
  CHECK(b.data()[2] == 0.0F);
  b = pool.take_copy(b);
  CHECK(pool.live_bytes() == 12);
  CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % 64 == 0);
}

TEST_CASE("a tensor of no elements is empty and costs nothing") {
  TensorPool pool;
  CHECK(pool.take(0).empty());
  CHECK(pool.allocations() == 0);
}

}  // namespace plumb::test
