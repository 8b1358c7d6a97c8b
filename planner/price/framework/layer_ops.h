#pragma once
// The work of a framework's rank for one layer of a language model.

#include "planner/price/framework/element_bytes.h"
#include "planner/price/framework/kernel.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// Returns the kernels and collectives of one micro-batch. `layer` is an embedding, a block or a head.
LayerOps layer_ops(const Layer& layer, const LayerWork& work, const StackSpec& stack, ElementBytes bytes);

}}  // namespace plumb::planner
