#include "kernels/layer/expert_rows.h"

#include <algorithm>

namespace plumb { inline namespace kernels {

std::int64_t most_rows_to_expert_rank(const TransformerLayer& layer, const RoutedTokens& tokens, int expert_ranks) {
  const std::int64_t experts = layer.experts / std::max(1, expert_ranks);
  const std::int64_t picked = tokens.sequences * tokens.tokens * std::min(layer.experts_per_token, experts);
  if (layer.capacity_factor == 0) return picked;
  return std::min(picked,
                  experts * tokens.sequences * std::min(expert_capacity(layer, tokens.sequence), tokens.tokens));
}

}}  // namespace plumb::kernels
