#pragma once
// The work of a framework's rank for one of Mamba-2's blocks: the kernels of its layer program, one by one, with the
// framework's products and collectives. The state space runs at the rate of attention over one chunk, whose products it
// has (Dao & Gu 2024, section 6).

#include "planner/price/framework/kernel.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

LayerOps mamba2_ops(const Mamba2Layer& layer, const LayerWork& work, const StackSpec& stack, ElementBytes bytes);

}}  // namespace plumb::planner
