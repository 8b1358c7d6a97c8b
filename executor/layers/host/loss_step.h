#pragma once
// Cross-entropy that ends a model, with the gradient that it leaves in the place of the logits. Where a tensor group
// shares the vocabulary, each rank sums up its own columns of a row, and the ranks gather these parts.

#include "executor/layers/host/host_step.h"

namespace plumb { inline namespace executor {

/// Runs a kCrossEntropy step, which sets the layer's loss.
void take_loss(const HostStep& of);

/// Makes the own part of each softmax and gathers those of all ranks, [ranks, 3, T].
void gather_loss_parts(const HostStep& of);

}}  // namespace plumb::executor
