#pragma once
// A greedy list scheduler for split backwards on a chain of stages, one a rank: it plays the pipeline's clock, and
// whenever a rank is free it picks that rank's next action by a few rules. It looks no further ahead than to the
// messages that are under way.

#include <vector>

#include "schedules/action.h"
#include "schedules/synthesis/chain.h"

namespace plumb {

/// The numbers in the rules of one rank.
struct ChainRule {
  int max_in_flight = 1;       ///< forwards ahead of input gradients, 1 or more
  double patience = 0;         ///< W fills a gap if it delays what comes next by no more than this share of W
  bool forward_first = false;  ///< of F and I that are both ready

  friend bool operator==(const ChainRule&, const ChainRule&) = default;
};

/// The order in which the ranks of the chain act: F, I and W of every micro-batch, each ascending.
///   1. A ready I runs, or a ready F within max_in_flight and max_bytes (which of both first: forward_first).
///   2. A ready F that max_bytes alone forbids makes way for itself with a W.
///   3. With nothing ready, W fills the time to the next message that is under way, if it fits (patience).
std::vector<std::vector<Action>> schedule_chain(const ChainCosts& costs, const std::vector<ChainRule>& rules);

}  // namespace plumb
