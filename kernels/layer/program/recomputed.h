#pragma once
// Recomputation: the tensors that a forward forgets, and the steps that make them again.

#include <vector>

#include "kernels/layer/program/program.h"
#include "kernels/layer/recompute.h"

namespace plumb { inline namespace kernels {

/// Returns for each tensor whether the forward forgets it, though the backward needs it: with kSelective the results,
/// not the statistics, of norms and activation functions; with kFull and kStage all but what the layer is handed.
std::vector<bool> forgotten_tensors(const LayerProgram& program, Recompute what);

/// Returns for each tensor whether it is a result of one of these steps of the forward. [position in steps]
std::vector<bool> results_of(const LayerProgram& program, const std::vector<bool>& steps);

/// Returns the positions of the steps that make the forgotten tensors again that the backward needs, in their order,
/// and of the steps on whose forgotten results these depend.
std::vector<int> recomputed_steps(const LayerProgram& program, const std::vector<bool>& forgotten);

/// Returns the kernel calls of the steps that `what` repeats.
std::vector<KernelCall> recomputed_kernels(const LayerProgram& program, Recompute what);

}}  // namespace plumb::kernels
