#include "kernels/layer/expert_rows.h"

#include <algorithm>
#include <cmath>

namespace plumb { inline namespace kernels {

std::int64_t expert_capacity(const TransformerLayer& layer, std::int64_t sequence) {
  if (layer.capacity_factor <= 0) return sequence;
  const auto picks = static_cast<double>(sequence * layer.experts_per_token);
  const auto even = layer.capacity_factor * picks / static_cast<double>(layer.experts);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(even)), 1, sequence);
}

std::int64_t most_rows_to_expert_rank(const TransformerLayer& layer, const RoutedTokens& tokens, int expert_ranks) {
  const std::int64_t experts = layer.experts / std::max(1, expert_ranks);
  const std::int64_t picked = tokens.sequences * tokens.tokens * std::min(layer.experts_per_token, experts);
  if (layer.capacity_factor == 0) return picked;
  return std::min(picked,
                  experts * tokens.sequences * std::min(expert_capacity(layer, tokens.sequence), tokens.tokens));
}

}}  // namespace plumb::kernels
