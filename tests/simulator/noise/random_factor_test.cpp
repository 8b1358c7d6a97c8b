#include "simulator/noise/random_factor.h"

#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {
namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments moments_of(Distribution distribution, double cv, int draws) {
  const FactorShape shape = factor_shape(distribution, cv);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double factor = random_factor(shape, random_key({7, static_cast<std::uint64_t>(i)}));
    sum += factor;
    squares += (factor - 1) * (factor - 1);
  }
  return {.mean = sum / draws, .deviation = std::sqrt(squares / draws)};
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("a factor without variation is exactly 1") {
    for (const Distribution d : {Distribution::kLognormal, Distribution::kNormal, Distribution::kGamma})
      CHECK(random_factor(factor_shape(d, 0), 42) == 1);
  }

  TEST_CASE("a factor depends on its key alone, and every word of the key counts") {
    const FactorShape shape = factor_shape(Distribution::kGamma, 0.3);
    CHECK(random_factor(shape, random_key({1, 2})) == random_factor(shape, random_key({1, 2})));
    std::set<std::uint64_t> keys;
    for (std::uint64_t a = 0; a < 30; ++a) {
      for (std::uint64_t b = 0; b < 30; ++b) keys.insert(random_key({a, b}));
    }
    CHECK(keys.size() == 900);
  }

  TEST_CASE("a coefficient of variation out of range is refused with the range") {
    CHECK_THROWS_WITH_AS(factor_shape(Distribution::kLognormal, -0.1),
                         doctest::Contains("out of range for the lognormal distribution: give 0 to 1"), SpecError);
    CHECK_THROWS_WITH_AS(factor_shape(Distribution::kNormal, 0.3), doctest::Contains("or take lognormal or gamma"),
                         SpecError);
    CHECK_THROWS_AS(factor_shape(Distribution::kGamma, std::nan("")), SpecError);
  }
}

TEST_SUITE("property") {
  TEST_CASE("factors have mean 1 and the deviation that was asked for, whatever the distribution") {
    constexpr int kDraws = 200'000;
    for (const Distribution d : {Distribution::kLognormal, Distribution::kNormal, Distribution::kGamma}) {
      for (const double cv : {0.02, 0.1, 0.25, 1.0}) {
        if (d == Distribution::kNormal && cv > kLargestNormalCv) continue;
        CAPTURE(distribution_name(d));
        CAPTURE(cv);
        const Moments moments = moments_of(d, cv, kDraws);
        // Five standard errors of the mean; the deviation's own is wider where the tail is heavy (lognormal, cv 1).
        CHECK(std::abs(moments.mean - 1) < 5 * cv / std::sqrt(kDraws));
        CHECK(std::abs(moments.deviation / cv - 1) < (cv == 1 ? 0.05 : 0.015));
      }
    }
  }

  TEST_CASE("lognormal factors have their median at exp(-sigma^2 / 2)") {
    const FactorShape shape = factor_shape(Distribution::kLognormal, 0.5);
    const double median = std::exp(-0.5 * std::log(1 + 0.25));
    int below = 0;
    for (std::uint64_t i = 0; i < 100'000; ++i) below += random_factor(shape, random_key({i})) < median ? 1 : 0;
    CHECK(std::abs(below - 50'000) < 5 * std::sqrt(25'000));
  }
}

}  // namespace plumb::test
