#pragma once
// What a stage on the CPU is made of, from its options (cpu/stage.h).

#include <cstddef>
#include <memory>
#include <vector>

#include "executor/cpu/layers/layer.h"
#include "executor/cpu/parameters/parameters.h"
#include "executor/cpu/stage.h"

namespace plumb { inline namespace executor {

LayerSeat layer_seat(const CpuStageOptions& options);

/// The tokens of every sequence that are worked on as a slice, or by this context rank.
ContextTokens tokens_of_slice(const CpuStageOptions& options, int slice);

std::vector<std::unique_ptr<CpuLayer>> make_layers(const CpuStageOptions& options);
std::size_t scratch_elements(const std::vector<std::unique_ptr<CpuLayer>>& layers, const CpuStageOptions& options);

/// [slice]; the pool and the scratch outlive them.
std::vector<CpuContext> slice_contexts(const CpuStageOptions& options, TensorPool& pool, float* scratch);

/// The first layer of each group that is computed again as one.
std::vector<std::size_t> group_starts(const CpuStageOptions& options);

CpuParameterOptions parameter_options(const CpuStageOptions& options, ParameterPart part);

/// Those of its routed experts; null where the stage has none.
std::unique_ptr<CpuParameters> make_expert_parameters(const CpuStageOptions& options, TensorPool& pool);

}}  // namespace plumb::executor
