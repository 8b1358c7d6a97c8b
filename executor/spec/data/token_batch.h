#pragma once
// The training data: sequences cut out of a text, byte by byte. The sequence of a sample depends on the seed, the step
// and the sample's number in the global batch, and so on nothing that a layout decides.

#include <cstdint>
#include <span>
#include <vector>

#include "executor/spec/division/sequence_slice.h"

namespace plumb { inline namespace executor {

/// The random stream that picks the sequences of a step; initial weights draw from stream 1.
inline constexpr std::uint64_t kDataStream = 2;

/// The sequences [first_sample, first_sample + count) of a step.
struct BatchPlace {
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  std::int64_t first_sample = 0;
  std::int64_t count = 1;     ///< sequences
  std::int64_t sequence = 0;  ///< tokens of each
  TokenRange slice;           ///< tokens of each sequence that are wanted; count 0: all
  TokenRange second_slice;    ///< more tokens of each sequence, behind these; may be empty
};

/// Fills inputs: [count * sequence] tokens, or count * the tokens of both slices. Asserts that the text is longer than
/// a sequence.
void fill_inputs(std::span<std::int32_t> inputs, std::span<const std::uint8_t> text, const BatchPlace& place);

/// Fills targets: the token behind each input.
void fill_targets(std::span<std::int32_t> targets, std::span<const std::uint8_t> text, const BatchPlace& place);

}}  // namespace plumb::executor
