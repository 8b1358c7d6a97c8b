#include "kernels/simt/rotary.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_rotary() {
  constexpr RotarySize kSize{
      .tokens = 10, .sequence = 5, .heads = 3, .head_size = 14, .row_width = 60, .rotary_size = 10};
  const std::vector<float> table = rotary_table(kSize.sequence, kSize.rotary_size, 10000.0);
  std::vector<S> x = stored<S>(random_values(kSize.tokens * kSize.row_width, 1));
  Values expected = widened_all(x);
  const Values before = expected;
  rotary(expected.data(), table.data(), kSize, RotaryDirection::kForward);
  run_on_host(simt::Rotary<S>{x.data(), table.data(), kSize, RotaryDirection::kForward}, kBlocks, kLanes);
  CHECK(relative_difference(widened_all(x), expected) < tolerance<S>());
  run_on_host(simt::Rotary<S>{x.data(), table.data(), kSize, RotaryDirection::kBackward}, kBlocks, kLanes);
  CHECK(relative_difference(widened_all(x), before) < 2 * tolerance<S>());
}

}  // namespace

TEST_CASE("GPU rotary embedding agrees with the CPU's, and turns back") {
  check_rotary<float>();
  check_rotary<Bf16>();
  check_rotary<Fp16>();
}

}  // namespace plumb::test
