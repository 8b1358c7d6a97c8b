#pragma once
// The sum that tells whether a message has arrived as it was sent.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plumb { inline namespace executor {

/// Modulo 2^64, two values to a word and a last odd one by itself: rows of 8 words are added lane by lane, and these
/// sums row by row (Fletcher 1982); then the lanes, with odd factors. A word counts (2 lane + 1) (1 + 2 rows from it to
/// the last) times, an odd number: any one value that changes changes the sum. As fast as memory is read.
std::uint64_t word_sum(std::span<const float> values);

/// What is said of a message of so many values whose sum is another than the one that was sent.
std::string changed_text(const std::string& message, std::size_t values);

}}  // namespace plumb::executor
