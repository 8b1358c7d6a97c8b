#pragma once
// The sum that tells whether a message has arrived as it was sent.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plumb {

/// The sum of word[i] * (2 i + 1) modulo 2^64, two values to a word and a last odd one by itself: any one value that
/// changes changes it, for the factors are odd.
std::uint64_t word_sum(std::span<const float> values);

/// What is said of a message of so many values whose sum is another than the one that was sent.
std::string changed_text(const std::string& message, std::size_t values);

}  // namespace plumb
