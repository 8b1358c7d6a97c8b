#include "planner/search/candidate_queue.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "planner/spec/layout_keys.h"

namespace plumb { inline namespace planner {
namespace {

/// True if the layout has every value that `only` answers. A split is no such key.
bool has_values(const Layout& layout, const LayoutRequest& only) {
  bool all = true;
  visit_layout_keys<std::optional>([&](std::string_view, auto answer, auto question) {
    all = all && (!(only.*question) || *(only.*question) == layout.*answer);
  });
  return all;
}

/// True if two requests give no key two values.
bool agree(const LayoutRequest& one, const LayoutRequest& other) {
  bool all = true;
  visit_layout_keys<std::optional>([&](std::string_view, auto, auto question) {
    all = all && (!(one.*question) || !(other.*question) || one.*question == other.*question);
  });
  return all;
}

}  // namespace

CandidateQueue::CandidateQueue(const Candidates& candidates, LayoutRequest only)
    : candidates_(candidates), only_(std::move(only)) {
  for (std::size_t index = 0; index < candidates.families().size(); ++index) {
    if (agree(family_of(candidates.families()[index].layout), only_)) push(candidates.node_of(Level::kFamily, index));
  }
}

void CandidateQueue::push(const Node& node) {
  if (node.level == Level::kCandidate && !has_values(candidates_.layout(node.index), only_)) return;
  waiting_.push_back(node);
  std::ranges::push_heap(waiting_, std::greater{});
}

void CandidateQueue::push(std::span<const Node> nodes) {
  for (const Node& node : nodes) push(node);
}

std::optional<Node> CandidateQueue::take_first() {
  if (waiting_.empty()) return std::nullopt;
  std::ranges::pop_heap(waiting_, std::greater{});
  const Node first = waiting_.back();
  waiting_.pop_back();
  return first;
}

std::optional<double> CandidateQueue::least() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.front().value;
}

}}  // namespace plumb::planner
