#pragma once
// The activations of one micro-batch that a transformer layer keeps for its backward in a training framework. The
// tensors are listed, with their source, in price/memory/framework_memory.h.

#include "kernels/layer.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// Bytes on one rank.
struct KeptActivations {
  double kept = 0;     ///< held from the layer's forward to its backward
  double rebuilt = 0;  ///< brought back by recomputation
};

/// Bytes of each element of a tensor: as it is computed, and as a product keeps its input.
struct SavedBytes {
  double element = 0;
  double input = 0;
};

/// Returns what attention and the MLP or experts of the layer keep, without a state mixer.
KeptActivations kept_activations(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                                 Recompute recompute, SavedBytes bytes);

}}  // namespace plumb::planner
