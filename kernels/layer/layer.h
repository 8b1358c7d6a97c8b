#pragma once
// A layer's description: its kind and sizes, and from these its parameters, the kernels that run it (with their shapes,
// FLOPs and bytes) and the tensors that it keeps for its backward. It has no numerics. The planner prices these lists
// and the executor runs them, so the layers that are priced are the layers that run.
//
// Symbols (used on every tensor of kernels/): b micro-batch, s sequence, T = b*s tokens, h hidden, a heads, k kv heads,
// d head size, f feed-forward size, V vocabulary, t tensor-parallel degree. Where samples are images or vectors, s is
// 1.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/layer/device_bytes.h"
#include "kernels/layer/fused_kernels.h"
#include "kernels/layer/kernel_call.h"
#include "kernels/layer/kinds.h"
#include "kernels/layer/layer_work.h"
#include "kernels/layer/recompute.h"

namespace plumb { inline namespace kernels {

/// A parameter tensor, row-major.
struct ParameterTensor {
  std::string name;                 ///< e.g. "qkv.weight"
  std::vector<std::int64_t> shape;  ///< e.g. [h + 2kd, h]: [out, in] for matrices
  int split_dimension = -1;         ///< dimension that tensor parallelism divides; -1: replicated
  /// True if the tensor belongs to the routed experts, which expert parallelism divides: [experts, out, in].
  bool expert = false;

  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

/// Returns the parameters of a layer on one of `tensor_parallel` ranks, in the order in which every part of Plumb keeps
/// them. A tied head lists its table too. Where the ranks do not divide the number of heads, channels, rows or experts,
/// it is rounded up (the fullest rank's share); a rank has at least one kv head. Convolutions, linear layers and MLPs
/// are whole on every rank. A filter is a row, [kernel, kernel, channels / groups].
std::vector<ParameterTensor> layer_parameters(const Layer& layer, int tensor_parallel = 1, ExpertDivision experts = {});

/// Returns the elements of one tensor, and of all parameters of a layer on one of `tensor_parallel` ranks (replicated
/// ones in full).
std::int64_t element_count(const ParameterTensor& tensor);
std::int64_t parameter_count(const Layer& layer, int tensor_parallel = 1, ExpertDivision experts = {});

/// Returns the elements of the parameters of routed experts, which parameter_count() includes.
std::int64_t expert_parameter_count(const Layer& layer, ExpertDivision experts = {});

/// Returns the most copies of a sequence's tokens that one expert of the layer takes: `sequence`, which is all of them,
/// if there is no capacity factor.
std::int64_t expert_capacity(const TransformerLayer& layer, std::int64_t sequence);

/// True if this version's kernels run the layer. They do not run latent attention, which is only priced.
bool has_kernels(const Layer& layer);

enum class Pass : std::uint8_t { kForward, kInputGrad, kWeightGrad, kOptimizer };

/// Returns the kernels of one pass over one layer on one rank, in the order in which they run. A whole backward is the
/// input gradient's list followed by the weight gradient's. A layer whose input needs no gradient (the embedding) has
/// an empty kInputGrad. The head's cross-entropy and its logits belong to kForward. Asserts has_kernels().
std::vector<KernelCall> layer_kernels(const Layer& layer, const LayerWork& work, Pass pass);

/// A tensor that a layer keeps from its forward to its backward, or from its input gradient to its weight gradient.
struct SavedTensor {
  std::string name;           ///< e.g. "attention output"
  std::int64_t elements = 0;  ///< on one rank
  /// It takes 4 bytes an element whatever the computing precision (norm statistics, log-sum-exp, tokens).
  bool single_precision = false;
  /// Its storage is still held after the input gradient is done: the weight gradient reads it, or the gradient that has
  /// taken its place.
  bool needed_by_weight_grad = false;
  /// It is not there before the input gradient is done: the output's gradient, which takes no saved tensor's place and
  /// waits for the weight gradient.
  bool from_input_grad = false;

  friend bool operator==(const SavedTensor&, const SavedTensor&) = default;
};
/// Returns the tensors that a layer saves for its backward, on one rank.
std::vector<SavedTensor> saved_tensors(const Layer& layer, const LayerWork& work);

/// Returns the elements of the temporaries that a pass holds at its peak, besides the saved tensors, its input and its
/// output. If the output of kInputGrad takes the place of the saved input, it counts as that. A kernel's own scratch is
/// not counted.
std::int64_t workspace_elements(const Layer& layer, const LayerWork& work, Pass pass);

/// Returns the elements, on one rank, of the input that the layer takes from the layer before; 0 for a layer that
/// begins a model.
std::int64_t input_elements(const Layer& layer, const LayerWork& work);

/// Returns the elements, on one rank, of the output that the layer hands to the next: T*h for a block (T*h/t with
/// sequence parallelism); 0 for a layer that ends a model.
std::int64_t output_elements(const Layer& layer, const LayerWork& work);

}}  // namespace plumb::kernels
