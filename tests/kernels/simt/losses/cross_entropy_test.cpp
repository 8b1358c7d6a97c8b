#include "kernels/simt/losses/cross_entropy.h"

#include <doctest/doctest.h>

#include "kernels/cpu/losses/cross_entropy.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_cross_entropy() {
  constexpr std::int64_t kRows = 11, kColumns = 1009;
  std::vector<S> logits = stored<S>(random_values(kRows * kColumns, 1, 8.0F));
  std::vector<std::int32_t> targets;
  for (std::int32_t row = 0; row < kRows; ++row) targets.push_back(static_cast<std::int32_t>(row * 97 % kColumns));
  Values gradient = widened_all(logits);
  const double loss = cross_entropy(gradient.data(), targets.data(), kRows, kColumns, 0.25F);
  Values losses(kRows);
  run_on_host(simt::CrossEntropy<S>{losses.data(), logits.data(), targets.data(), kRows, kColumns, 0.25F}, kBlocks,
              kLanes);
  double own_loss = 0;
  for (const float each : losses) own_loss += static_cast<double>(each);
  CHECK(own_loss == doctest::Approx(loss).epsilon(1e-6));
  CHECK(relative_difference(widened_all(logits), gradient) < tolerance<S>());
}

}  // namespace

TEST_CASE("GPU cross-entropy agrees with the CPU's") {
  check_cross_entropy<float>();
  check_cross_entropy<Bf16>();
  check_cross_entropy<Fp16>();
}

}  // namespace plumb::test
