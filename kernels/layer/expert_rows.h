#pragma once
// How many rows ranks of an expert group have for each other's experts at most, whatever the router picks: sizes of
// exchanges and of buffers that are settled before the first step.

#include <cstdint>

#include "kernels/layer/layer.h"

namespace plumb { inline namespace kernels {

/// Tokens of a micro-batch, or slice, on one rank.
struct RoutedTokens {
  std::int64_t sequences = 1;
  std::int64_t tokens = 1;    ///< of each sequence that are here
  std::int64_t sequence = 1;  ///< tokens of a whole one
};

/// For the experts of one of `expert_ranks` ranks, which divide the layer's: a token has each expert once, and an
/// expert takes of each sequence no more than its capacity.
std::int64_t most_rows_to_expert_rank(const TransformerLayer& layer, const RoutedTokens& tokens, int expert_ranks);

}}  // namespace plumb::kernels
