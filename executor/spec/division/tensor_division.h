#pragma once
// The division of a layer's parameters by tensor parallelism (Shoeybi et al. 2019). Attention is divided by heads, the
// MLP by channels, tables and projections by tokens of the vocabulary; norms and the biases of row-parallel products
// are not divided. The share of a rank is again a layer, with fewer heads, channels and tokens. With fewer kv heads k
// than tensor ranks t (Llama over many), t/k neighbouring ranks have the same kv head, and its gradient is the sum of
// theirs.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/layer.h"

namespace plumb { inline namespace executor {

/// A rank's number in a tensor group of `ranks` ranks.
struct TensorSeat {
  int ranks = 1;
  int rank = 0;
};

/// A rank's number among the `ranks` ranks over which the experts are spread, and among those that share each of its
/// experts.
struct ExpertSeat {
  int ranks = 1;
  int rank = 0;
  TensorSeat tensor;
};

/// The two kinds of parameters of a layer: those of routed experts, which only the ranks of the same experts have, and
/// all others.
enum class ParameterPart : std::uint8_t { kCommon, kExperts };

constexpr bool is_in(const ParameterTensor& tensor, ParameterPart part) {
  return tensor.expert == (part == ParameterPart::kExperts);
}

/// Returns why `ranks` ranks cannot share the layer, or `expert_tensor` of them each of its routed experts, with the
/// remedy; empty if they can. A vocabulary that they do not divide is padded.
std::string why_not_divisible(const Layer& layer, int ranks, int expert_tensor);

/// Returns why the layer's experts cannot be spread over `ranks` ranks, with the remedy; empty if they can, or if the
/// layer has none.
std::string why_not_spread(const Layer& layer, int ranks);

/// Returns the layer of one of `ranks` ranks. A vocabulary is rounded up. Every routed expert is divided over
/// `expert_tensor` ranks like an MLP, and all experts are counted. Asserts that the layer is divisible.
Layer divide_layer(const Layer& layer, int ranks, int expert_tensor);

std::vector<Layer> divide_layers(const std::vector<Layer>& layers, int ranks, int expert_tensor);

/// Returns how many neighbouring ranks have the same kv heads; 1 where each has its own, and for other layers.
int kv_sharers(const Layer& layer, int ranks);

/// Elements [local, local + count) of a rank's parameter are elements [whole, whole + count) of the whole one.
struct ElementRun {
  std::int64_t local = 0;
  std::int64_t whole = 0;
  std::int64_t count = 0;
  bool is_replica = false;  ///< a rank before this one has these elements too
};

/// Returns the part of `run` that lies within [first, first + count) of the rank's parameter; its count is 0 if there
/// is none.
ElementRun within(const ElementRun& run, std::int64_t first, std::int64_t count);

/// Returns all elements of the rank's share of a parameter (in the order of layer_parameters()), ascending in `local`.
/// The padding of a vocabulary is in no run.
std::vector<ElementRun> element_runs(const Layer& layer, std::size_t parameter, const TensorSeat& seat,
                                     const ExpertSeat& experts = {});

}}  // namespace plumb::executor
