#pragma once
// A chain of stages, one a rank, with split backwards: schedules are synthesised for it. This says how long any order
// of its actions must take.

#include <cstdint>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace schedules {

/// The costs of a chain of stages, and the memory that it may hold. Stage s is on rank s.
struct ChainCosts {
  int microbatches = 1;
  std::vector<SimTime> forward;      ///< [stage]
  std::vector<SimTime> input_grad;   ///< [stage]
  std::vector<SimTime> weight_grad;  ///< [stage]
  SimTime hop{0};                    ///< from a stage's end to its neighbour's start
  // A micro-batch holds activation_bytes from the start of F on; I's end frees a part of it, W's end the rest.
  std::int64_t activation_bytes = 1;
  std::int64_t released_at_input_grad_bytes = 0;
  std::vector<std::int64_t> max_bytes;  ///< [stage] activation_bytes or more
};

/// Returns a lower bound of the zero-bubble papers' span, the largest time over the ranks from the start of a rank's
/// first action to the end of its last: no order that keeps to max_bytes has a smaller one. Links carry any number of
/// messages at once. It is the largest, over ranks i and j >= i, of
///   the work of i, and the forwards that i's memory holds back until its first input gradient is there;
///   the way of i's first forward to j, all that j must do up to its last input gradient (with the weight gradients
///   that its memory demands before its last forward), and the way of that gradient back to i.
SimTime chain_span_bound(const ChainCosts& costs);

}}  // namespace plumb::schedules
