#pragma once
// The work of a framework's rank for a block's state mixer with its norm and its residual: the kernels of its layer
// program, one by one, with the framework's products and collectives. A state space in chunks, and a gated delta rule, run
// at the rate of attention over one chunk, whose products they have (Dao & Gu 2024, section 6; Yang et al. 2024, section
// 3.3). Mamba's selective scan is priced by the bytes that it moves, which its kernel is made to be bound by (Gu & Dao
// 2023, section 3.3.2).

#include "planner/price/framework/element_bytes.h"
#include "planner/price/framework/kernel.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// Attention beside the mixer brings the norm.
LayerOps state_mixer_ops(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                         ElementBytes bytes);

}}  // namespace plumb::planner
