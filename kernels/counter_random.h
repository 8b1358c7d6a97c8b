#pragma once
// Random numbers without a state: each number is a hash of a key that names its purpose. A number does not depend on
// who draws it or in which order, so initial weights and data are the same under every layout.
//
//   uniform_index(count, {seed, kData, step, sample})

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

namespace plumb { inline namespace kernels {

/// The finaliser of SplitMix64 (Steele, Lea & Flood 2014).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// Returns the hash of a key from that of all its words but the last.
constexpr std::uint64_t hash_on(std::uint64_t before, std::uint64_t last) {
  return mix_bits(before ^ mix_bits(last));
}

/// Returns 64 random bits: the hash of the words of `key`, in their order.
constexpr std::uint64_t counter_random(std::initializer_list<std::uint64_t> key) {
  std::uint64_t state = 0;
  for (const std::uint64_t word : key) state = hash_on(state, word);
  return state;
}

/// Returns a number in [0, count); count >= 1.
constexpr std::uint64_t uniform_index(std::uint64_t count, std::initializer_list<std::uint64_t> key) {
  return counter_random(key) % count;
}

/// Returns a number in [0, 1).
constexpr double uniform_share(std::initializer_list<std::uint64_t> key) {
  return static_cast<double>(counter_random(key) >> 32) / 4294967296.0;
}

/// Returns a sample of the normal distribution with mean 0 and standard deviation 1 (Box & Muller 1958).
inline float standard_normal(std::initializer_list<std::uint64_t> key) {
  const std::uint64_t bits = counter_random(key);
  const double radius = (static_cast<double>(bits >> 32) + 1.0) / 4294967296.0;  // (0, 1]
  const double angle = static_cast<double>(bits & 0xFFFFFFFFU) / 4294967296.0;
  return static_cast<float>(std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle));
}

}}  // namespace plumb::kernels
