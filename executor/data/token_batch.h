#pragma once
// The training data: sequences cut out of a text, byte by byte. Which sequence a sample is depends on the seed, the
// step and the sample's number in the global batch, and so on nothing that a layout decides.

#include <cstdint>
#include <span>
#include <vector>

#include "executor/division/sequence_slice.h"

namespace plumb { inline namespace executor {

/// The random stream that picks what a step trains on; initial weights draw from stream 1.
inline constexpr std::uint64_t kDataStream = 2;

/// Sequences [first_sample, first_sample + count) of a step.
struct BatchPlace {
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  std::int64_t first_sample = 0;
  std::int64_t count = 1;     ///< sequences
  std::int64_t sequence = 0;  ///< tokens of each
  TokenRange slice;           ///< those of each sequence that are wanted; count 0: all
  TokenRange second_slice;    ///< wanted behind these; may be empty
};

/// inputs: [count * sequence], the tokens (or count * those of both slices). Asserts that the text is longer than a
/// sequence.
void fill_inputs(std::span<std::int32_t> inputs, std::span<const std::uint8_t> text, const BatchPlace& place);

/// targets: the token behind each input.
void fill_targets(std::span<std::int32_t> targets, std::span<const std::uint8_t> text, const BatchPlace& place);

}}  // namespace plumb::executor
