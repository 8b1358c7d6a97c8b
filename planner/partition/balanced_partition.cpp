#include "planner/partition/balanced_partition.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

Seconds part_cost(const LayerLoads& weights, const std::vector<int>& split, std::size_t part) {
  Seconds cost = split[part] * weights.transformer;
  if (part == 0) cost += weights.embedding;
  if (part + 1 == split.size()) cost += weights.head;
  return cost;
}

Seconds slowest_part(const LayerLoads& weights, const std::vector<int>& split) {
  Seconds slowest{0};
  for (std::size_t part = 0; part < split.size(); ++part) slowest = std::max(slowest, part_cost(weights, split, part));
  return slowest;
}

/// Places the layers that the lowest-cost rule places in any case: up to a level of cost that not all layers can reach.
int place_below_level(std::vector<int>& split, std::vector<Seconds>& cost, std::vector<Seconds>& rank_cost, int layers,
                      const LayerLoads& weights, const std::vector<int>& ranks) {
  const auto parts = static_cast<int>(ranks.size());
  const Seconds all = layers * weights.transformer + weights.embedding + weights.head;
  const Seconds level = all / parts - weights.transformer;
  int placed = parts;
  for (std::size_t part = 0; part < split.size(); ++part) {
    while (cost[part] < level && placed < layers) {
      ++split[part];
      ++placed;
      cost[part] = part_cost(weights, split, part);
      rank_cost[ranks[part]] += weights.transformer;
    }
  }
  return placed;
}

std::vector<int> greedy_split(int layers, const LayerLoads& weights, const std::vector<int>& ranks) {
  std::vector<int> split(ranks.size(), 1);
  std::vector<Seconds> rank_cost(static_cast<std::size_t>(*std::ranges::max_element(ranks)) + 1, Seconds{0});
  std::vector<Seconds> cost;  // [model part]
  for (std::size_t part = 0; part < split.size(); ++part) {
    cost.push_back(part_cost(weights, split, part));
    rank_cost[ranks[part]] += cost.back();
  }
  for (int placed = place_below_level(split, cost, rank_cost, layers, weights, ranks); placed < layers; ++placed) {
    std::size_t cheapest = 0;
    for (std::size_t part = 1; part < split.size(); ++part) {
      const bool tie = cost[part] == cost[cheapest];
      if (cost[part] < cost[cheapest] || (tie && rank_cost[ranks[part]] < rank_cost[ranks[cheapest]])) cheapest = part;
    }
    ++split[cheapest];
    cost[cheapest] = part_cost(weights, split, cheapest);
    rank_cost[ranks[cheapest]] += weights.transformer;
  }
  return split;
}

}  // namespace

std::vector<int> ranks_by_part(const std::vector<StagePlace>& stages) {
  std::vector<int> ranks;
  for (const StagePlace& stage : stages) {
    const auto part = static_cast<std::size_t>(stage.model_part);
    if (part >= ranks.size()) ranks.resize(part + 1, -1);
    if (ranks[part] < 0) ranks[part] = stage.rank;
  }
  return ranks;
}

std::string runs_text(const std::vector<int>& split) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < split.size();) {
    std::size_t end = i;
    while (end < split.size() && split[end] == split[i]) ++end;
    runs.push_back(end - i > 1 ? fmt::format("{}x{}", split[i], end - i) : fmt::format("{}", split[i]));
    i = end;
  }
  return fmt::format("{}", fmt::join(runs, ","));
}

Partition balanced_partition(int transformer_layers, const LayerLoads& weights, const std::vector<StagePlace>& stages) {
  const std::vector<int> ranks = ranks_by_part(stages);
  const auto parts = static_cast<int>(ranks.size());
  assert(!stages.empty() && transformer_layers >= parts);
  constexpr double kWorthwhile = 0.99;
  if (transformer_layers % parts == 0) {
    std::vector<int> even(static_cast<std::size_t>(parts), transformer_layers / parts);
    const Seconds mean = (transformer_layers * weights.transformer + weights.embedding + weights.head) / parts;
    constexpr double kRounding = 1e-9;
    if (mean * (1 - kRounding) >= kWorthwhile * slowest_part(weights, even)) return {.split = std::move(even)};
  }
  const std::vector<int> balanced = greedy_split(transformer_layers, weights, ranks);
  const Seconds best = slowest_part(weights, balanced);
  if (transformer_layers % parts == 0) {
    const std::vector<int> even(static_cast<std::size_t>(parts), transformer_layers / parts);
    if (!(best < kWorthwhile * slowest_part(weights, even))) return {.split = even};
    return {
        .split = balanced,
        .notes = {fmt::format("layers are split {} over {} stages, since embedding and head count: the slowest stage "
                              "takes {:.1f} % less time than with {} each",
                              runs_text(balanced), parts, 100 * (1 - best / slowest_part(weights, even)),
                              transformer_layers / parts)}};
  }
  return {.split = balanced,
          .notes = {fmt::format("{} layers do not divide into {} stages: they are split {}", transformer_layers, parts,
                                runs_text(balanced))}};
}

void require_all_layers(const std::vector<int>& split, int transformer_layers) {
  const int sum = std::accumulate(split.begin(), split.end(), 0);
  if (sum == transformer_layers) return;
  throw SpecError(fmt::format("split {} places {} layers, but the model has {}: make it sum up to {}", runs_text(split),
                              sum, transformer_layers, transformer_layers));
}

std::vector<std::vector<Layer>> layers_by_part(const std::vector<Layer>& layers, const std::vector<int>& split) {
  require_all_layers(split, static_cast<int>(layers.size()) - 2);
  std::vector<std::vector<Layer>> parts(split.size());
  auto next = layers.begin() + 1;
  for (std::size_t part = 0; part < split.size(); ++part) {
    parts[part].assign(next, next + split[part]);
    next += split[part];
  }
  parts.front().insert(parts.front().begin(), layers.front());
  parts.back().push_back(layers.back());
  return parts;
}

}}  // namespace plumb::planner
