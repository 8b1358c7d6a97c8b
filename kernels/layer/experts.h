#pragma once
// The parameters, kernels and tensors of a mixture of experts, which takes the place of a transformer block's MLP
// (Shazeer et al. 2017; shared experts: Dai et al. 2024). T tokens that each pick k of E experts make R = T*k picks.
// The experts of a rank have as many rows if the load is even: with expert parallelism a rank's own rows depend on
// the router's picks, and the rows of its group add up to R for each of its ranks. A pick that the capacity drops
// leaves its row unused.

#include <cstdint>
#include <vector>

#include "kernels/layer/layer.h"

namespace plumb { inline namespace kernels {

void append_expert_parameters(std::vector<ParameterTensor>& tensors, const TransformerLayer& layer, int tensor_parallel,
                              ExpertDivision division);

/// Appends the kernel calls of one pass. The products of the experts are one call of as many products, of R / experts
/// rows each. With `fused` they are the calls of a device (layer/fused_kernels.h), where the products of experts and of
/// the router are kernels of their own kind, and so is the weighing of picks.
void append_expert_kernels(std::vector<KernelCall>& calls, const TransformerLayer& layer, const LayerWork& work,
                           Pass pass, bool fused = false);
void append_expert_saved(std::vector<SavedTensor>& tensors, const TransformerLayer& layer, const LayerWork& work);

/// Returns the elements of the mixture's temporaries at their peak; in kInputGrad expert_gradient_elements() come on
/// top.
std::int64_t expert_workspace(const TransformerLayer& layer, const LayerWork& work, Pass pass);

/// Returns the elements of those saved tensors that only the input gradient makes.
std::int64_t expert_gradient_elements(const TransformerLayer& layer, const LayerWork& work);

}}  // namespace plumb::kernels
