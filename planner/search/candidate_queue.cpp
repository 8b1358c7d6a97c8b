#include "planner/search/candidate_queue.h"

#include <algorithm>
#include <functional>

namespace plumb { inline namespace planner {

CandidateQueue::CandidateQueue(const Candidates& candidates, double most) {
  for (std::size_t index = 0; index < candidates.families().size(); ++index)
    if (candidates.families()[index].value <= most) push(candidates.node_of(Level::kFamily, index));
}

void CandidateQueue::push(const Node& node) {
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
