#pragma once
// The shape that 1F1B and its relatives share on a rank: some forwards run ahead, then one forward and one backward in
// turn, then the backwards that remain. Where backwards are split, each weight gradient comes some input gradients
// later.

#include <vector>

#include "schedules/action.h"

namespace plumb { inline namespace schedules {

/// Returns `warmup` forwards, then F and B alternating until the forwards are used up, then the other backwards.
/// `warmup` is clamped to the number of forwards; both lists must be equally long.
std::vector<Action> one_forward_one_backward(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
                                             int warmup);

/// Returns `actions` with a W for each I: it stands behind the I that comes `delay` I's later, and the W's that remain
/// stand at the end.
///   with_weight_grads(0F0 0F1 0I0 0F2 0I1 0I2, 1)  ->  0F0 0F1 0I0 0F2 0I1 0W0 0I2 0W1 0W2
std::vector<Action> with_weight_grads(const std::vector<Action>& actions, int delay);

/// Returns `op` of one stage for micro-batches 0, 1, ..., ascending.
std::vector<Action> each_microbatch(Op op, int stage, int microbatches);

/// Returns {op, stage, microbatch} without part or pair.
inline Action compute_action(Op op, int stage, int microbatch) {
  return {.op = op, .stage = stage, .microbatch = microbatch};
}

}}  // namespace plumb::schedules
