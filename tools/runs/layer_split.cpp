#include "tools/runs/layer_split.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/pattern.h"

namespace plumb { inline namespace tools {
namespace {

/// Returns the layers that stay together: an input with the layer behind it, a loss with the layer before it.
std::vector<std::vector<Layer>> units_of(const std::vector<Layer>& model) {
  std::vector<std::vector<Layer>> units;
  bool joins_previous = false;
  for (const Layer& layer : model) {
    if (units.empty() || !(joins_previous || std::holds_alternative<LossLayer>(layer))) units.emplace_back();
    units.back().push_back(layer);
    joins_previous = std::holds_alternative<InputLayer>(layer);
  }
  return units;
}

std::vector<int> uniform_split(int units, int stages) {
  std::vector<int> counts;
  for (int stage = 0; stage < stages; ++stage) counts.push_back(units / stages + (stage < units % stages ? 1 : 0));
  return counts;
}

/// Returns a split into non-empty runs whose largest sum is least, found by dynamic programming. Among equal splits it
/// takes the one with the longest runs at the end.
std::vector<int> balanced_split(const std::vector<std::int64_t>& weights, int stages) {
  const std::size_t units = weights.size(), runs = static_cast<std::size_t>(stages);
  std::vector<std::int64_t> sums(units + 1, 0);
  std::partial_sum(weights.begin(), weights.end(), sums.begin() + 1);
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  // Least largest sum, and the start of its last run. [runs so far][units so far]
  std::vector<std::vector<std::int64_t>> least(runs + 1, std::vector<std::int64_t>(units + 1, kNone));
  std::vector<std::vector<std::size_t>> start(runs + 1, std::vector<std::size_t>(units + 1, 0));
  least[0][0] = 0;
  for (std::size_t run = 1; run <= runs; ++run)
    for (std::size_t end = run; end <= units; ++end)
      for (std::size_t first = run - 1; first < end; ++first) {
        if (least[run - 1][first] == kNone) continue;
        const std::int64_t largest = std::max(least[run - 1][first], sums[end] - sums[first]);
        if (largest >= least[run][end]) continue;
        least[run][end] = largest;
        start[run][end] = first;
      }
  std::vector<int> counts(runs);
  for (std::size_t run = runs, end = units; run > 0; --run) {
    counts[run - 1] = static_cast<int>(end - start[run][end]);
    end = start[run][end];
  }
  return counts;
}

std::vector<std::int64_t> parameters_of(const std::vector<std::vector<Layer>>& units) {
  std::vector<std::int64_t> weights;
  for (const std::vector<Layer>& unit : units) {
    weights.push_back(0);
    for (const Layer& layer : unit) weights.back() += parameter_count(layer);
  }
  return weights;
}

std::vector<std::int64_t> matches_of(const std::vector<std::vector<Layer>>& units, const std::string& expression) {
  const Pattern kind(expression, "split type:" + expression);
  std::vector<std::int64_t> weights;
  for (const std::vector<Layer>& unit : units)
    weights.push_back(
        std::ranges::count_if(unit, [&](const Layer& layer) { return kind.found_in(layer_kind_name(layer)); }));
  if (std::ranges::max(weights) == 0)
    throw SpecError(fmt::format("split type:{}: the model has no layer of such a kind; its first is of kind {}",
                                expression, layer_kind_name(units.front().back())));
  return weights;
}

std::vector<int> listed_split(std::string_view rule, int units, int stages) {
  std::vector<int> counts;
  for (const char *at = rule.data(), *end = rule.data() + rule.size(); at <= end; ++at) {
    int count = 0;
    const auto [stop, error] = std::from_chars(at, end, count);
    if (error != std::errc{} || (stop != end && *stop != ','))
      throw SpecError(fmt::format(
          "split \"{}\": give uniform, parameters, type:REGEX, or a number of layers for each stage as in 3,2,2",
          rule));
    if (count < 1)
      throw SpecError(
          fmt::format("split {} leaves stage {} empty: give each stage at least one layer", rule, counts.size()));
    counts.push_back(count);
    at = stop;
  }
  if (static_cast<int>(counts.size()) != stages)
    throw SpecError(fmt::format("split {} names {} stages, and there are {}: give one number for each", rule,
                                counts.size(), stages));
  const int sum = std::accumulate(counts.begin(), counts.end(), 0);
  if (sum != units)
    throw SpecError(
        fmt::format("split {} places {} layers, and the model has {}: make it sum up to {}", rule, sum, units, units));
  return counts;
}

}  // namespace

std::vector<std::vector<Layer>> split_layers(const std::vector<Layer>& model, int stages, std::string_view rule) {
  constexpr std::string_view kType = "type:";
  const std::vector<std::vector<Layer>> units = units_of(model);
  const int count = static_cast<int>(units.size());
  if (count < stages)
    throw SpecError(
        fmt::format("{} stages cannot share {} layers without an empty one: use fewer ranks or chunks", stages, count));
  std::vector<int> counts;
  if (rule == "uniform") {
    counts = uniform_split(count, stages);
  } else if (rule == "parameters") {
    counts = balanced_split(parameters_of(units), stages);
  } else if (rule.starts_with(kType)) {
    counts = balanced_split(matches_of(units, std::string(rule.substr(kType.size()))), stages);
  } else {
    counts = listed_split(rule, count, stages);
  }
  std::vector<std::vector<Layer>> parts;
  auto next = units.begin();
  for (const int of_stage : counts) {
    parts.emplace_back();
    for (int i = 0; i < of_stage; ++i, ++next) parts.back().insert(parts.back().end(), next->begin(), next->end());
  }
  return parts;
}

}}  // namespace plumb::tools
