#pragma once
// The division of every sequence's tokens over the ranks of a context group.

#include <cstdint>
#include <string>

#include "executor/spec/division/sequence_slice.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

/// The way in which the ranks of a context group attend to each other's tokens.
enum class ContextAttention : std::uint8_t {
  /// Keys and values are passed round a ring (Liu et al. 2023).
  kRing,
  /// An all-to-all gives each rank all tokens of some heads, and another takes them back (Jacobs et al. 2023).
  kUlysses,
};

/// A rank's number in a context group of `ranks` ranks.
struct ContextSeat {
  int ranks = 1;
  int rank = 0;
  ContextAttention attention = ContextAttention::kRing;
};

/// The tokens of every sequence that a rank has, in this order. The second run may be empty.
struct ContextTokens {
  TokenRange first;
  TokenRange second;

  std::int64_t count() const { return first.count + second.count; }
};

/// Returns the rank's tokens of `shared`, the tokens of a sequence or of a slice. In a ring these are runs r and 2n-1-r
/// of 2n equal ones, so that all ranks see as many keys under a causal mask (zigzag: Zhu 2024, Llama team 2024). Under
/// Ulysses these are run r of n, and for one rank all tokens. Asserts that the division is possible.
ContextTokens context_tokens(const TokenRange& shared, const ContextSeat& seat);

/// Sequences of `sequence` tokens, cut into slices.
struct SequenceCut {
  std::int64_t sequence = 0;  ///< tokens of a whole sequence
  int slices = 1;
};

/// Returns why the ranks of a context group (in a tensor group of `tensor_ranks`) cannot share each slice of such
/// sequences in this layer, with the remedy; empty if they can.
std::string why_not_shared(const Layer& layer, const SequenceCut& cut, const ContextSeat& seat, int tensor_ranks);

}}  // namespace plumb::executor
