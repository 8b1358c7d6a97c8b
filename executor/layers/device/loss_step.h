#pragma once
// The losses that end a model, with the gradients that they leave in the place of logits or predictions. Where a tensor
// group shares the vocabulary, each rank sums up its own columns of a row, and the ranks gather these parts.

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

/// Enqueues a kCrossEntropy or kSquaredError step.
void enqueue_loss(const StepCall& of);

/// Enqueues the kernel that makes the own part of each softmax, and the gather of all parts, [ranks, 3, T] in fp32.
void gather_loss_parts(const StepCall& of);

}}  // namespace plumb::executor
