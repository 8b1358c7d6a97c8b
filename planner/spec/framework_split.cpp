#include "planner/spec/framework_split.h"

namespace plumb { inline namespace planner {
namespace {

/// Shares out the layers, with `first` and `last` more for what stands before and behind them.
std::vector<int> shared_out(int layers, int first, int last, int parts) {
  const int all = layers + first + last;
  std::vector<int> split(static_cast<std::size_t>(parts), all / parts);
  for (int part = 0; part < all % parts; ++part) ++split[part];
  split.front() -= first;
  split.back() -= last;
  return split;
}

/// The first and the last part may hold the embedding and the head alone.
bool has_layers(const std::vector<int>& split) {
  for (std::size_t part = 0; part < split.size(); ++part) {
    const bool end = split.size() > 1 && (part == 0 || part + 1 == split.size());
    if (split[part] < (end ? 0 : 1)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<int>> framework_split(StageSplit rule, int transformer_layers, int parts) {
  const auto counting = [&](int first, int last, bool evenly) -> std::optional<std::vector<int>> {
    if (evenly && (transformer_layers + first + last) % parts != 0) return std::nullopt;
    std::vector<int> split = shared_out(transformer_layers, first, last, parts);
    if (!has_layers(split)) return std::nullopt;
    return split;
  };
  if (rule == StageSplit::kEndsAsLayers) return counting(1, 1, false);
  if (auto even = counting(0, 0, true)) return even;
  if (auto both = counting(1, 1, true)) return both;
  return counting(0, 1, true);
}

}}  // namespace plumb::planner
