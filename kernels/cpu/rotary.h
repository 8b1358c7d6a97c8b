#pragma once
// Rotary position embedding (Su et al. 2021) on the leading channels of each head, channel i paired with i + size/2
// (GPT-NeoX's and Llama's layout). KernelKind kRotary.

#include <cstdint>
#include <vector>

namespace plumb { inline namespace kernels {

struct RotarySize {
  std::int64_t tokens = 0;       ///< T, sequences of `sequence` tokens one after the other
  std::int64_t sequence = 0;     ///< s
  std::int64_t heads = 0;        ///< heads that turn: the leading ones of a row (queries, then keys)
  std::int64_t head_size = 0;    ///< d
  std::int64_t row_width = 0;    ///< elements from a token to the next
  std::int64_t rotary_size = 0;  ///< leading channels of a head that turn; even
};

enum class RotaryDirection : std::uint8_t { kForward, kBackward };

/// Returns the cosines and sines of position * theta^(-2i/rotary_size): [s, rotary_size], where a row holds size/2
/// cosines, then size/2 sines.
std::vector<float> rotary_table(std::int64_t sequence, std::int64_t rotary_size, double theta);

/// Turns the heads in place. The backward turns the other way, which is the transpose. x: [T, row_width]; table: [s,
/// rotary_size]
void rotary(float* x, const float* table, const RotarySize& size, RotaryDirection direction);

}}  // namespace plumb::kernels
