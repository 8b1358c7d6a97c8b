#pragma once
// Families, cores and candidates by the least value that they may have (search/objective.h); of equals the first in the
// order of the tree, the simplest.
//
//   CandidateQueue waiting(candidates);
//   while (const auto node = waiting.take_first()) waiting.push(candidates.take_steps({&*node, 1}));

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "planner/search/candidates.h"

namespace plumb { inline namespace planner {

class CandidateQueue {
 public:
  /// Has all families at first, but for those above `most`.
  explicit CandidateQueue(const Candidates& candidates, double most = std::numeric_limits<double>::infinity());

  void push(const Node& node);
  void push(std::span<const Node> nodes);
  /// Returns the first one; nothing if none is left.
  std::optional<Node> take_first();
  /// Returns a value below which no layout that waits can be; nothing if none waits.
  std::optional<double> least() const;

 private:
  std::vector<Node> waiting_;  // a heap, the least in front
};

}}  // namespace plumb::planner
