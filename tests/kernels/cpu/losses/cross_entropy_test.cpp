#include "kernels/cpu/losses/cross_entropy.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

TEST_CASE("equal logits cost the logarithm of the vocabulary") {
  Values logits(2 * 50, 3.0F);
  const std::vector<std::int32_t> targets = {0, 49};
  CHECK(cross_entropy(logits.data(), targets.data(), 2, 50, 1.0F) == doctest::Approx(2 * std::log(50.0)));
}

TEST_CASE("the gradient of the cross-entropy agrees with finite differences and is scaled") {
  constexpr std::int64_t kRows = 4, kVocab = 21;
  const std::vector<std::int32_t> targets = {3, 20, 0, 7};
  for (const float cap : {0.0F, 2.0F}) {
    CAPTURE(cap);
    Values logits = random_values(kRows * kVocab, 1, 3.0F), gradient = logits;
    cross_entropy(gradient.data(), targets.data(), kRows, kVocab, 0.25F, 0, cap);
    const auto objective = [&] {
      Values scratch = logits;
      return 0.25 * cross_entropy(scratch.data(), targets.data(), kRows, kVocab, 0.25F, 0, cap);
    };
    CHECK(gradient_error(logits, gradient, objective) < kGradientTolerance);
  }
}

TEST_CASE("a softcap bounds the logits by tanh, and one far above them changes nothing") {
  const std::vector<std::int32_t> targets = {1};
  Values logits = {30.0F, -30.0F}, same = {0.5F, 0.25F}, plain = same;
  CHECK(cross_entropy(logits.data(), targets.data(), 1, 2, 1.0F, 0, 2.0F) ==
        doctest::Approx(std::log1p(std::exp(4.0))));
  CHECK(cross_entropy(same.data(), targets.data(), 1, 2, 1.0F, 0, 1e4F) ==
        doctest::Approx(cross_entropy(plain.data(), targets.data(), 1, 2, 1.0F)));
}

TEST_CASE("columns of padding take no part, and their gradient is 0") {
  constexpr std::int64_t kRows = 3, kVocab = 21, kPadding = 4;
  const std::vector<std::int32_t> targets = {3, 20, 0};
  Values logits = random_values(kRows * kVocab, 1, 3.0F), padded;
  for (std::int64_t row = 0; row < kRows; ++row) {
    padded.insert(padded.end(), logits.begin() + row * kVocab, logits.begin() + (row + 1) * kVocab);
    padded.insert(padded.end(), kPadding, 99.0F);
  }
  const double loss = cross_entropy(logits.data(), targets.data(), kRows, kVocab, 0.25F);
  CHECK(cross_entropy(padded.data(), targets.data(), kRows, kVocab + kPadding, 0.25F, kPadding) == loss);
  for (std::int64_t i = 0; i < kRows * (kVocab + kPadding); ++i) {
    const std::int64_t row = i / (kVocab + kPadding), c = i % (kVocab + kPadding);
    CHECK(padded[static_cast<std::size_t>(i)] ==
          (c < kVocab ? logits[static_cast<std::size_t>(row * kVocab + c)] : 0.0F));
  }
}

TEST_CASE("large logits do not overflow") {
  Values logits = {1000.0F, -1000.0F, 999.0F};
  const std::vector<std::int32_t> targets = {1};
  CHECK(cross_entropy(logits.data(), targets.data(), 1, 3, 1.0F) ==
        doctest::Approx(2000.0 + std::log1p(std::exp(-1.0))));
  CHECK(logits[1] == doctest::Approx(-1.0F));
}

}  // namespace plumb::test
