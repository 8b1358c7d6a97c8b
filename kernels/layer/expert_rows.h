#pragma once
// The most rows that ranks of an expert group can have for each other's experts, whatever the router picks. The sizes
// of exchanges and buffers follow from it before the first step.

#include <cstdint>

#include "kernels/layer/kinds.h"

namespace plumb { inline namespace kernels {

/// Returns the most copies of a sequence's tokens that one expert of the layer takes: `sequence`, which is all of them,
/// if there is no capacity factor.
std::int64_t expert_capacity(const TransformerLayer& layer, std::int64_t sequence);

/// The tokens of a micro-batch, or of a slice, on one rank.
struct RoutedTokens {
  std::int64_t sequences = 1;
  std::int64_t tokens = 1;    ///< tokens of each sequence on this rank
  std::int64_t sequence = 1;  ///< tokens of a whole sequence
};

/// Returns the most rows of these tokens that the experts of one rank can get, where `expert_ranks` ranks divide the
/// layer's experts: a token picks an expert once at most, and an expert takes no more than its capacity of each
/// sequence.
std::int64_t most_rows_to_expert_rank(const TransformerLayer& layer, const RoutedTokens& tokens, int expert_ranks);

}}  // namespace plumb::kernels
