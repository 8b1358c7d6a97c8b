#include "planner/search/other_values.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>

#include "planner/search/candidate_queue.h"
#include "planner/spec/layout_keys.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the best candidate with those values; nothing if none fits.
std::optional<std::size_t> best_of(Candidates& candidates, const LayoutRequest& only) {
  CandidateQueue waiting(candidates, only);
  while (const auto first = waiting.take_first()) {
    if (first->level == Level::kCandidate && candidates[first->index].known == Known::kShared) return first->index;
    waiting.push(candidates.take_steps({&*first, 1}));
  }
  return std::nullopt;
}

/// Opens every family and core, so that all values are known.
void open_all(Candidates& candidates) {
  std::vector<Node> families;
  for (std::size_t family = 0; family < candidates.families().size(); ++family)
    families.push_back(candidates.node_of(Level::kFamily, family));
  candidates.take_steps(candidates.take_steps(families));
}

}  // namespace

std::vector<OtherValue> other_values(Candidates& candidates, std::size_t best) {
  std::vector<OtherValue> answers;
  open_all(candidates);
  const Layout of_best = candidates.layout(best);
  visit_layout_keys<std::optional>([&](std::string_view key, auto member, auto question) {
    auto values = std::vector{of_best.*member};
    for (std::size_t index = 0; index < candidates.size(); ++index) {
      const auto& value = candidates.layout(index).*member;
      if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    }
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(of_best.*member)>>)
      std::sort(values.begin() + 1, values.end());
    for (std::size_t other = 1; other < values.size(); ++other) {
      LayoutRequest only;
      only.*question = values[other];
      const auto counts = [&](const Layout& layout) { return layout.*member == values[other]; };
      OtherValue answer{.key = std::string(key), .value = value_text(values[other])};
      if (const auto found = best_of(candidates, only)) {
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
