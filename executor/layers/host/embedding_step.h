#pragma once
// Token and position embedding on the CPU. A tensor rank has V/t rows of the table and looks up the tokens among them
// (others are negative); the first rank adds the positions, whose table every rank has.

#include "executor/layers/host/host_step.h"

namespace plumb { inline namespace executor {

/// Runs a kEmbeddingForward or kEmbeddingBackward step. A context rank first copies the positions of its tokens
/// together, and adds their gradients to the table's.
void run_embedding(const HostStep& of);

}}  // namespace plumb::executor
