#pragma once
// What a layer is: its kind and sizes, and from these its parameters, the kernels that run it (with their shapes, FLOPs
// and bytes) and the tensors it keeps for its backward. No numerics here. The planner prices these lists and the
// executor runs them: the layers that are priced are the layers that run.
//
// Symbols (used on every tensor of kernels/): b micro-batch, s sequence, T = b*s tokens, h hidden, a heads, k kv heads,
// d head size, f feed-forward size, V vocabulary, t tensor-parallel degree. Where samples are images or vectors, s
// is 1.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/layer/device_bytes.h"
#include "kernels/layer/fused_kernels.h"
#include "kernels/layer/kernel_call.h"
#include "kernels/layer/kinds.h"
#include "kernels/layer/layer_work.h"

namespace plumb { inline namespace kernels {

/// A parameter tensor, row-major.
struct ParameterTensor {
  std::string name;                 ///< e.g. "qkv.weight"
  std::vector<std::int64_t> shape;  ///< e.g. [h + 2kd, h]: [out, in] for matrices
  int split_dimension = -1;         ///< which dimension tensor parallelism divides; -1: replicated
  bool expert = false;              ///< of a routed expert: divided by expert parallelism, [experts, out, in]

  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

/// The parameters of a layer on one of `tensor_parallel` ranks, in the order in which every part of Plumb keeps them. A
/// tied head lists its table too. A head, channel, row or expert count that the division does not divide is rounded up
/// (the fullest rank's share); kv heads are at least one a rank. Convolutions, linear layers and MLPs are whole on
/// every rank. A filter is a row, [kernel, kernel, channels / groups].
std::vector<ParameterTensor> layer_parameters(const Layer& layer, int tensor_parallel = 1, ExpertDivision experts = {});

/// Elements of one tensor, and of all parameters of a layer on one of `tensor_parallel` ranks (replicated ones in
/// full).
std::int64_t element_count(const ParameterTensor& tensor);
std::int64_t parameter_count(const Layer& layer, int tensor_parallel = 1, ExpertDivision experts = {});

/// Of these the parameters of routed experts.
std::int64_t expert_parameter_count(const Layer& layer, ExpertDivision experts = {});

/// Copies of a sequence's tokens that one expert of the layer takes at most; all of them, `sequence`, without a
/// capacity factor.
std::int64_t expert_capacity(const TransformerLayer& layer, std::int64_t sequence);

/// Whether this version's kernels run the layer: not latent attention, which is only priced.
bool has_kernels(const Layer& layer);

enum class Pass : std::uint8_t { kForward, kInputGrad, kWeightGrad, kOptimizer };

/// The kernels of one pass over one layer on one rank, in the order in which they run. A whole backward is the input
/// gradient's list followed by the weight gradient's. A layer whose input needs no gradient (the embedding) has an
/// empty kInputGrad. The head's cross-entropy and its logits belong to kForward. Asserts has_kernels().
std::vector<KernelCall> layer_kernels(const Layer& layer, const LayerWork& work, Pass pass);

/// A tensor that a layer keeps from its forward to its backward, or from its input gradient to its weight gradient.
struct SavedTensor {
  std::string name;           ///< e.g. "attention output"
  std::int64_t elements = 0;  ///< on one rank
  bool single_precision =
      false;  ///< 4 bytes an element whatever the computing precision (norm statistics, log-sum-exp, tokens)
  bool needed_by_weight_grad = false;  ///< its storage is still held after the input gradient is done: the weight
                                       ///< gradient reads it, or the gradient that has taken its place
  bool from_input_grad = false;        ///< not there before the input gradient is done: the output's gradient, which
                                       ///< takes no saved tensor's place and waits for the weight gradient

  friend bool operator==(const SavedTensor&, const SavedTensor&) = default;
};
std::vector<SavedTensor> saved_tensors(const Layer& layer, const LayerWork& work);

/// Elements of the temporaries that a pass holds at its peak besides the saved tensors, its input and its output, where
/// the output of kInputGrad that takes the place of the saved input counts as that. A kernel's own scratch is not
/// counted.
std::int64_t workspace_elements(const Layer& layer, const LayerWork& work, Pass pass);

/// Elements of the tensor that a layer takes from the one before, on one rank; 0 for one that begins a model.
std::int64_t input_elements(const Layer& layer, const LayerWork& work);

/// Elements of the tensor that a layer hands to the next, on one rank: T*h for a block (T*h/t with sequence
/// parallelism); 0 for one that ends a model.
std::int64_t output_elements(const Layer& layer, const LayerWork& work);

}}  // namespace plumb::kernels
