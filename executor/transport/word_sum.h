#pragma once
// The sum that tells whether a message has arrived unchanged.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plumb { inline namespace executor {

/// Returns the sum of the values' words modulo 2^64. A word has two values, and a last odd value is a word by itself.
/// Rows of 8 words are added lane by lane, and these sums row by row (Fletcher 1982); then the lanes are added with odd
/// factors. A word counts (2 lane + 1) (1 + 2 rows from it to the last) times. This is an odd number, so any one value
/// that changes changes the sum. The sum is as fast as memory is read.
std::uint64_t word_sum(std::span<const float> values);

/// Returns the error text for a message of so many values whose sum differs from the sum that was sent.
std::string changed_text(const std::string& message, std::size_t values);

}}  // namespace plumb::executor
