#pragma once
// Token and position embedding. A tensor rank has V/t rows of the table and looks up the tokens among them (others are
// negative); the first rank adds the positions, whose table every rank has.

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

/// Enqueues a kEmbeddingForward or kEmbeddingBackward step. A rank that has some tokens of each sequence first copies
/// their rows of the position table together, and adds the gradients of these to the table's.
void enqueue_embedding(const StepCall& of);

}}  // namespace plumb::executor
