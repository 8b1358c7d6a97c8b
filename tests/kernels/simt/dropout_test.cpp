#include "kernels/simt/dropout.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_dropout() {
  constexpr DropoutRows kRows{
      .first_sample = 2, .count = 3, .first_token = 4, .tokens = 5, .columns = 37, .first_column = 6};
  constexpr DropoutKey kKey{.seed = 9, .step = 2, .layer = 3, .place = 1};
  constexpr std::int64_t kElements = kRows.count * kRows.tokens * kRows.columns;
  const std::vector<S> x = stored<S>(random_values(kElements, 1)), residual = stored<S>(random_values(kElements, 2));
  Values expected(kElements);
  dropout(expected.data(), widened_all(x).data(), kKey, kRows, 0.3);
  const Values past = widened_all(residual);
  for (std::int64_t i = 0; i < kElements; ++i) expected[i] += past[i];
  std::vector<S> y(kElements);
  run_on_host(simt::Dropout<S>{y.data(), x.data(), residual.data(), kKey, kRows, 0.3F}, kBlocks, kLanes);
  CHECK(relative_difference(widened_all(y), expected) < tolerance<S>());
}

}  // namespace

TEST_CASE("GPU dropout draws the CPU's mask") {
  check_dropout<float>();
  check_dropout<Bf16>();
  check_dropout<Fp16>();
}

}  // namespace plumb::test
