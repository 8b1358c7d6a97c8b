#pragma once
// How context parallelism divides the tokens of every sequence over its ranks.

#include <cstdint>
#include <string>

#include "executor/division/sequence_slice.h"
#include "kernels/layer/layer.h"

namespace plumb { inline namespace executor {

/// How the ranks of a context group attend to each other's tokens.
enum class ContextAttention : std::uint8_t {
  kRing,     ///< keys and values go round (Liu et al. 2023)
  kUlysses,  ///< an all-to-all gives each rank all tokens of some heads, and another takes them back (Jacobs et al.
             ///< 2023)
};

/// Which rank of how many of a context group.
struct ContextSeat {
  int ranks = 1;
  int rank = 0;
  ContextAttention attention = ContextAttention::kRing;
};

/// The tokens of every sequence that a rank has, in this order; the second run may be empty.
struct ContextTokens {
  TokenRange first;
  TokenRange second;

  std::int64_t count() const { return first.count + second.count; }
};

/// Of all tokens of a sequence, or of those of a slice. In a ring, runs r and 2n-1-r of 2n equal ones, so that all
/// ranks see as many keys under a causal mask (zigzag: Zhu 2024, Llama team 2024); under Ulysses, run r of n. All of
/// them for one rank. Asserts that the division is possible.
ContextTokens context_tokens(const TokenRange& shared, const ContextSeat& seat);

/// How sequences are cut into slices.
struct SequenceCut {
  std::int64_t sequence = 0;  ///< tokens
  int slices = 1;
};

/// Why the ranks of a context group (in a tensor group of `tensor_ranks`) cannot share each slice of such sequences in
/// this layer, with the remedy; empty if they can.
std::string why_not_shared(const Layer& layer, const SequenceCut& cut, const ContextSeat& seat, int tensor_ranks);

}}  // namespace plumb::executor
