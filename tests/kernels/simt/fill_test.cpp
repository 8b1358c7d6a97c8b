#include "kernels/simt/fill.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE("GPU fills zeros and widens 16-bit numbers") {
  constexpr std::int64_t kElements = 517;
  Values values = random_values(kElements + 1, 1);
  const float last = values.back();
  run_on_host(simt::FillZero{values.data(), kElements}, kBlocks, kLanes);
  CHECK(std::all_of(values.begin(), values.end() - 1, [](float value) { return value == 0.0F; }));
  CHECK(values.back() == last);
  const std::vector<Bf16> narrow = stored<Bf16>(random_values(kElements, 2));
  Values wide(kElements);
  run_on_host(simt::Widen<Bf16>{wide.data(), narrow.data(), kElements}, kBlocks, kLanes);
  CHECK(wide == widened_all(narrow));
}

}  // namespace plumb::test
