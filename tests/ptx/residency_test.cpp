#include "tests/ptx/residency.h"

#include <doctest/doctest.h>

#include <vector>

namespace plumb::test::ptx {
namespace {

bool is(const Residency& residency, int blocks, const std::string& limit) {
  return residency.blocks == blocks && residency.limit == limit;
}

}  // namespace

TEST_CASE("a multiprocessor has as many blocks at once as the scarcest of its resources holds") {
  // 4 warps of 255 registers, which are 256 a lane, are half of 65536 registers.
  CHECK(is(residency_of({.threads = 128, .shared_bytes = 0}, 255, {}), 2, "registers"));
  CHECK(is(residency_of({.threads = 128, .shared_bytes = 113 << 10}, 32, {}), 2, "shared memory"));
  CHECK(is(residency_of({.threads = 128, .shared_bytes = 113 << 10}, 32, {.shared_bytes = 164 << 10}), 1,
           "shared memory"));
  CHECK(is(residency_of({.threads = 256, .shared_bytes = 0}, 32, {}), 8, "registers"));
  CHECK(is(residency_of({.threads = 256, .shared_bytes = 0}, 24, {}), 8, "warps"));
  CHECK(is(residency_of({.threads = 32, .shared_bytes = 0}, 32, {}), 32, "blocks"));
}

TEST_CASE("the last blocks keep a GPU waiting as long as others have nothing to do") {
  const std::vector<std::int64_t> alike(4, 10);
  CHECK(tail_ratio(alike, 4, 1) == 1.0);
  CHECK(tail_ratio(alike, 3, 1) == 1.5);  // a second wave for one block
  CHECK(tail_ratio(alike, 3, 3) == 1.0);
  const std::vector<std::int64_t> longest_first = {30, 20, 10};
  CHECK(tail_ratio(longest_first, 2, 1) == 1.0);
  const std::vector<std::int64_t> longest_last = {10, 20, 30};
  CHECK(tail_ratio(longest_last, 2, 1) == doctest::Approx(40.0 * 2 / 60));
  CHECK(tail_ratio({}, 2, 1) == 1.0);
}

}  // namespace plumb::test::ptx
