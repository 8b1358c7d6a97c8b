#include "kernels/simt/losses/cross_entropy.h"

#include <doctest/doctest.h>

#include "kernels/cpu/losses/cross_entropy.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kLossRows = 11, kLossColumns = 1009, kLossRow = kLossColumns + 7;

/// Returns the values of rows that lie kLossRow elements apart.
Values without_padding(const Values& padded) {
  Values values;
  for (std::size_t i = 0; i < padded.size(); ++i)
    if (i % kLossRow < kLossColumns) values.push_back(padded[i]);
  return values;
}

template <class S>
void check_cross_entropy(float cap) {
  std::vector<S> logits = stored<S>(random_values(kLossRows * kLossRow, 1, 8.0F));
  std::vector<std::int32_t> targets;
  for (std::int32_t row = 0; row < kLossRows; ++row)
    targets.push_back(static_cast<std::int32_t>(row * 97 % kLossColumns));
  Values gradient = without_padding(widened_all(logits));
  const double loss = cross_entropy(gradient.data(), targets.data(), kLossRows, kLossColumns, 0.25F, 0, cap);
  Values losses(kLossRows);
  const VocabPart part{.rows = kLossRows, .columns = kLossRow, .first = 0, .valid = kLossColumns, .softcap = cap};
  run_on_host(simt::CrossEntropy<S>{losses.data(), logits.data(), targets.data(), part, 0.25F}, kBlocks, kLanes);
  double own_loss = 0;
  for (const float each : losses) own_loss += static_cast<double>(each);
  CHECK(own_loss == doctest::Approx(loss).epsilon(1e-6));
  const Values padded = widened_all(logits);
  CHECK(relative_difference(without_padding(padded), gradient) < tolerance<S>());
  for (std::size_t i = 0; i < padded.size(); ++i)
    if (i % kLossRow >= kLossColumns) CHECK(padded[i] == 0);
}

}  // namespace

TEST_CASE("GPU cross-entropy agrees with the CPU's") {
  for (const float cap : {0.0F, 5.0F}) {
    check_cross_entropy<float>(cap);
    check_cross_entropy<Bf16>(cap);
    check_cross_entropy<Fp16>(cap);
  }
}

}  // namespace plumb::test
