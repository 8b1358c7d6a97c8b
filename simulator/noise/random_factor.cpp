#include "simulator/noise/random_factor.h"

#include <cmath>

#include <fmt/format.h>

#include "schedules/error.h"
#include "simulator/noise/portable_math.h"

namespace plumb { inline namespace simulator {
namespace {

constexpr std::uint64_t kGoldenGamma = 0x9E3779B97F4A7C15ULL;

constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// Gives as many numbers as a rejection needs, all from one key.
class WordStream {
 public:
  explicit WordStream(std::uint64_t key) : state_(key) {}

  /// Returns a number in (0, 1) of 53 bits.
  double uniform() {
    state_ += kGoldenGamma;
    return (static_cast<double>(mix(state_) >> 11) + 0.5) * 0x1p-53;
  }

  /// Returns a normal number of mean 0 and standard deviation 1.
  double normal() {
    for (;;) {
      const double x = 2 * uniform() - 1;
      const double y = 2 * uniform() - 1;
      const double s = x * x + y * y;
      if (s < 1 && s > 0) return x * std::sqrt(-2 * portable_log(s) / s);
    }
  }

  /// Returns a gamma number whose mean and variance are `shape` >= 1.
  double gamma(double shape) {
    const double d = shape - 1.0 / 3;
    const double c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = normal();
      const double root = 1 + c * x;
      if (root <= 0) continue;
      const double v = root * root * root;
      if (portable_log(uniform()) < 0.5 * x * x + d - d * v + d * portable_log(v)) return d * v;
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::string_view distribution_name(Distribution distribution) {
  switch (distribution) {
    case Distribution::kNormal:
      return "normal";
    case Distribution::kGamma:
      return "gamma";
    default:
      return "lognormal";
  }
}

FactorShape factor_shape(Distribution distribution, double cv) {
  const double largest = distribution == Distribution::kNormal ? kLargestNormalCv : kLargestCv;
  if (!(cv >= 0 && cv <= largest)) {
    throw SpecError(
        fmt::format("noise: a coefficient of variation of {} is out of range for the {} distribution: give "
                    "0 to {}{}",
                    cv, distribution_name(distribution), largest,
                    distribution == Distribution::kNormal ? ", or take lognormal or gamma" : ""));
  }
  FactorShape shape{.distribution = distribution, .cv = cv};
  if (cv > 0) shape.scale = distribution == Distribution::kGamma ? 1 / (cv * cv) : std::sqrt(portable_log(1 + cv * cv));
  return shape;
}

std::uint64_t random_key(std::initializer_list<std::uint64_t> words) {
  std::uint64_t state = 0;
  for (const std::uint64_t word : words) state = mix((state ^ mix(word + kGoldenGamma)) + kGoldenGamma);
  return state;
}

double random_factor(const FactorShape& shape, std::uint64_t key) {
  if (shape.cv == 0) return 1;
  WordStream stream(key);
  switch (shape.distribution) {
    case Distribution::kNormal: {
      const double factor = 1 + shape.cv * stream.normal();
      return factor > 0 ? factor : 0;
    }
    case Distribution::kGamma:
      return stream.gamma(shape.scale) / shape.scale;
    default:  // the mean of exp(sigma z) is exp(sigma^2 / 2)
      return portable_exp(shape.scale * (stream.normal() - 0.5 * shape.scale));
  }
}

}}  // namespace plumb::simulator
