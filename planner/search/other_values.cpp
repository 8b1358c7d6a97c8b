#include "planner/search/other_values.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "planner/search/candidates.h"
#include "planner/spec/layout_keys.h"

namespace plumb { inline namespace planner {
namespace {

std::string value_text(std::int64_t number) {
  return fmt::format("{}", number);
}

std::string value_text(bool flag) {
  return flag ? "1" : "0";
}

std::string value_text(int number) {
  return fmt::format("{}", number);
}

std::string value_text(const std::string& name) {
  return name;
}

std::string value_text(Recompute recompute) {
  return std::string(recompute_name(recompute));
}

std::string value_text(const Offload& offload) {
  return std::string(offload_name(offload));
}

/// Returns the best candidate of that kind; nothing if none fits.
std::optional<std::size_t> best_of(Candidates& candidates, const std::function<bool(const Layout&)>& counts) {
  CandidateQueue waiting(candidates);
  for (std::size_t index = 0; index < candidates.size(); ++index) {
    if (counts(candidates.layout(index))) waiting.push(index);
  }
  while (!waiting.empty()) {
    const std::size_t first = waiting.take_first();
    if (candidates[first].known == Known::kShared) return first;
    candidates.learn_more(first);
    waiting.push(first);
  }
  return std::nullopt;
}

}  // namespace

std::vector<OtherValue> other_values(Candidates& candidates, std::size_t best) {
  std::vector<OtherValue> answers;
  const Layout& of_best = candidates.layout(best);
  visit_layout_keys([&](std::string_view key, auto member, auto) {
    auto values = std::vector{of_best.*member};
    for (std::size_t index = 0; index < candidates.size(); ++index) {
      const auto& value = candidates.layout(index).*member;
      if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    }
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(of_best.*member)>>)
      std::sort(values.begin() + 1, values.end());
    for (std::size_t other = 1; other < values.size(); ++other) {
      const auto counts = [&](const Layout& layout) { return layout.*member == values[other]; };
      OtherValue answer{.key = std::string(key), .value = value_text(values[other])};
      if (const auto found = best_of(candidates, counts)) {
        answer.best = candidates.evaluation(*found);
        answer.best->lowered = {};
      } else if (const auto closest = closest_of(candidates, counts)) {
        answer.missing_bytes = candidates.shortfall(*closest)->missing_bytes;
      }
      answers.push_back(std::move(answer));
    }
  });
  return answers;
}

std::optional<std::size_t> closest_of(const Candidates& candidates, const std::function<bool(const Layout&)>& counts) {
  std::optional<std::size_t> closest;
  for (std::size_t index = 0; index < candidates.size(); ++index) {
    if (candidates[index].known != Known::kOut || !counts(candidates.layout(index))) continue;
    const auto shortfall = candidates.shortfall(index);
    if (!shortfall) continue;
    if (!closest || shortfall->missing_bytes < candidates.shortfall(*closest)->missing_bytes) closest = index;
  }
  return closest;
}

}}  // namespace plumb::planner
