#pragma once
// The operands of a step of attention on a device: what its kernel reads in the forward and in the backward.

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

/// Returns the operands of a step that attends to the keys and values in qkv. `first_head`: number of the first head that
/// the rank attends to among those whose sinks it has.
inline AttentionOperands operands_of(const StepCall& of, const AttentionBlock& block, std::int64_t first_head = 0) {
  AttentionOperands operands{.qkv = of.read(0), .block = block, .numbers = of.call.numbers};
  if (of.step.parameters.empty()) return operands;
  operands.sinks = of.vector(0) + first_head;
  if (!of.is_forward()) operands.dsinks = of.gradient(0) + first_head;
  return operands;
}

}}  // namespace plumb::executor
