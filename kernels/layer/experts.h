#pragma once
// What a mixture of experts, in the place of a transformer block's MLP, says of itself (Shazeer et al. 2017; shared
// experts: Dai et al. 2024). T tokens of which each picks k of E experts make R = T*k picks, as many rows for the
// experts of a rank where the load is even: with expert parallelism a rank's own rows depend on what the router picks,
// and those of its group add up to R for each of its ranks. A pick that the capacity drops leaves its row unused.

#include <cstdint>
#include <vector>

#include "kernels/layer/layer.h"

namespace plumb { inline namespace kernels {

void append_expert_parameters(std::vector<ParameterTensor>& tensors, const TransformerLayer& layer, int tensor_parallel,
                              ExpertDivision division);

/// Products of experts are one call of as many products, of R / experts rows each. `fused`: as a device calls them
/// (layer/fused_kernels.h): products of experts and of the router are kernels of their own kind, and what picks weigh.
void append_expert_kernels(std::vector<KernelCall>& calls, const TransformerLayer& layer, const LayerWork& work,
                           Pass pass, bool fused = false);
void append_expert_saved(std::vector<SavedTensor>& tensors, const TransformerLayer& layer, const LayerWork& work);

/// Temporaries of the mixture alone at its peak, in kInputGrad besides expert_gradient_elements.
std::int64_t expert_workspace(const TransformerLayer& layer, const LayerWork& work, Pass pass);

/// Of the saved tensors, those that only the input gradient makes.
std::int64_t expert_gradient_elements(const TransformerLayer& layer, const LayerWork& work);

}}  // namespace plumb::kernels
