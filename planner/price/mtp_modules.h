#pragma once
// The time, the parameters and the memory that modules of multi-token prediction add to a model's head (DeepSeek-AI 2024,
// 2412.19437, section 2.2). They stand on the stage of the head, as Megatron-Core puts them: each has a block like
// the model's last, a projection of 2h channels to h, and logits of its own from the head's table. A pipeline's last
// stage holds a copy of the embedding's table for them.
//
// The projection is priced as products alone: its norms, and the collectives of a tensor group for it, are left out.

#include "planner/price/kernel/kernel_price.h"
#include "planner/price/layer/layer_price.h"
#include "planner/price/memory/framework_memory.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"

namespace plumb { inline namespace planner {

/// Returns the parameters that one tensor rank has of the modules besides their blocks, and of the copy of the table.
std::int64_t mtp_parameters(const ModelSpec& model, const Layout& layout);

/// Return the head's price or footprint with the modules'. `block` is that of the model's last block.
LayerPrice with_mtp_modules(const LayerPrice& head, const LayerPrice& block, const KernelPrices& kernels,
                            const ModelSpec& model, const LayerWork& work);
LayerFootprint with_mtp_modules(const LayerFootprint& head, const LayerFootprint& block, const ModelSpec& model,
                                const TrainingSpec& training, const Layout& layout);
FrameworkFootprint with_mtp_modules(const FrameworkFootprint& head, const FrameworkFootprint& block,
                                    const ModelSpec& model, const TrainingSpec& training, const Layout& layout);

}}  // namespace plumb::planner
