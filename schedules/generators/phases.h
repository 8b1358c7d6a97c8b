#pragma once
// The shape that 1F1B and its relatives share on a rank: some forwards ahead, then one forward and one backward in
// turn, then the backwards that remain.

#include <vector>

#include "schedules/action.h"

namespace plumb {

/// warmup forwards, then F, B alternating until the forwards are used up, then the other backwards. `warmup` is clamped
/// to the forwards there are; both lists must be equally long.
std::vector<Action> one_forward_one_backward(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
                                             int warmup);

/// {op, stage, microbatch} without part or pair.
inline Action compute_action(Op op, int stage, int microbatch) {
  return {.op = op, .stage = stage, .microbatch = microbatch};
}

}  // namespace plumb
