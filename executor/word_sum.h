#pragma once
// The sum that tells whether a message has arrived as it was sent.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plumb {

/// The sum of values[i] * (2 i + 1), as 32-bit words modulo 2^64: any one word that changes changes it, and so do two
/// that are exchanged.
std::uint64_t word_sum(std::span<const float> values);

/// What is said of a message of so many values whose sum is another than the one that was sent.
std::string changed_text(const std::string& message, std::size_t values);

}  // namespace plumb
