#pragma once
// Makes the parts of a stage on the CPU from its options (executor/stages/host/cpu_stage.h).

#include <cstddef>
#include <memory>
#include <vector>

#include "executor/layers/host/layer.h"
#include "executor/parameters/parameters.h"
#include "executor/stages/host/cpu_stage.h"

namespace plumb { inline namespace executor {

LayerSeat layer_seat(const CpuStageOptions& options);

/// Returns the tokens of every sequence that this rank works on in a slice.
ContextTokens tokens_of_slice(const CpuStageOptions& options, int slice);

std::vector<std::unique_ptr<CpuLayer>> make_layers(const CpuStageOptions& options);
std::size_t scratch_elements(const std::vector<std::unique_ptr<CpuLayer>>& layers);

/// Returns the contexts of the slices, [slice]. The pool and the scratch must outlive them.
std::vector<CpuContext> slice_contexts(const CpuStageOptions& options, TensorPool& pool, float* scratch);

/// Returns the first layer of each group of layers whose activations are computed again together.
std::vector<std::size_t> group_starts(const CpuStageOptions& options);

CpuParameterOptions parameter_options(const CpuStageOptions& options, ParameterPart part);

/// Returns the parameters of the stage's routed experts; null where the stage has none.
std::unique_ptr<CpuParameters> make_expert_parameters(const CpuStageOptions& options, TensorPool& pool);

}}  // namespace plumb::executor
