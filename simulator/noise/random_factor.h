#pragma once
// A random factor around 1, by which a duration varies. It is a function of its key alone: the caller, the order of the
// draws and the machine change nothing.
//
//   random_factor(factor_shape(Distribution::kLognormal, 0.05), random_key({seed, run, action}))

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace plumb { inline namespace simulator {

enum class Distribution : std::uint8_t { kLognormal, kNormal, kGamma };

/// Returns "lognormal", "normal" or "gamma".
std::string_view distribution_name(Distribution distribution);

/// A distribution of mean 1, ready to draw from.
struct FactorShape {
  Distribution distribution = Distribution::kLognormal;
  double cv = 0;     ///< coefficient of variation: standard deviation by mean
  double scale = 0;  ///< for lognormal, sigma of the logarithm; for gamma, the shape parameter 1 / cv^2
};

inline constexpr double kLargestCv = 1.0;
inline constexpr double kLargestNormalCv = 0.25;

/// Throws SpecError if cv is not within [0, 1], or is above 0.25 for the normal distribution, whose factors are cut off
/// at 0: below that limit, cutting raises the mean by less than 2e-6.
FactorShape factor_shape(Distribution distribution, double cv);

/// Returns a hash of all words (the finaliser of SplitMix64: Steele, Lea & Flood 2014).
std::uint64_t random_key(std::initializer_list<std::uint64_t> words);

/// Returns the factor, which is exactly 1 where cv is 0. Normal numbers come from the polar method (Marsaglia & Bray
/// 1964), gamma numbers from rejection (Marsaglia & Tsang 2000).
double random_factor(const FactorShape& shape, std::uint64_t key);

}}  // namespace plumb::simulator
