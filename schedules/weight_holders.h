#pragma once
// Says whose weights a stage works with. The stages of one model part on one rank, which are of several lanes, work
// with one set of weights. A model part of several lanes whose backwards are input gradients alone has none, as
// attention has none between its products (HelixPipe).
//
//   stages 0..3 with rank/model part/lane 0/0/0 1/1/0 0/0/1 0/1/1 and lists of F and I alone for part 1:
//   stages 0 and 2 work with the weights of stage 0, stages 1 and 3 with none

#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Returns [stage] the stage that holds its weights and takes their OPTIMIZER_STEP: the first one of its model part on
/// its rank and of a lane of its own; -1 for a stage without weights.
std::vector<int> weight_holders(const Schedule& schedule);

/// True for a stage whose state is counted: not for one that works with another stage's weights.
constexpr bool holds_state(const std::vector<int>& holders, int stage) {
  return holders[static_cast<std::size_t>(stage)] < 0 || holders[static_cast<std::size_t>(stage)] == stage;
}

/// Returns the operation that `op` is for the life of activations: the input gradient of a stage without weights is its
/// whole backward.
constexpr Op with_or_without_weights(Op op, bool has_weights) {
  return op == Op::kInputGrad && !has_weights ? Op::kBackward : op;
}

}}  // namespace plumb::schedules
