#pragma once
// How tensor parallelism divides a layer's parameters (Shoeybi et al. 2019): attention by heads, the MLP by channels,
// tables and projections by tokens of the vocabulary, norms and the biases of row-parallel products not at all. The
// share of a rank is again a layer, with fewer heads, channels and tokens. Where there are fewer kv heads than ranks
// (Llama over many), t/k neighbouring ranks have the same one, whose gradient is the sum of theirs.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/layer/layer.h"

namespace plumb { inline namespace executor {

/// Which rank of how many of a tensor group.
struct TensorSeat {
  int ranks = 1;
  int rank = 0;
};

/// Which rank of how many that have some of the experts each.
struct ExpertSeat {
  int ranks = 1;
  int rank = 0;
};

/// The two kinds of parameters of a layer: those of routed experts, which only the ranks of the same experts have, and
/// all others.
enum class ParameterPart : std::uint8_t { kCommon, kExperts };

constexpr bool is_in(const ParameterTensor& tensor, ParameterPart part) {
  return tensor.expert == (part == ParameterPart::kExperts);
}

/// Why `ranks` ranks cannot share the layer, with the remedy; empty if they can. A vocabulary that they do not divide
/// is padded.
std::string why_not_divisible(const Layer& layer, int ranks);

/// Why `ranks` ranks cannot have some of the layer's experts each, with the remedy; empty if they can, or if it has
/// none.
std::string why_not_spread(const Layer& layer, int ranks);

/// The layer of one rank; the layer itself for one. A vocabulary is rounded up; every expert is divided like an MLP,
/// and all of them are there. Asserts that it is divisible.
Layer divide_layer(const Layer& layer, int ranks);

std::vector<Layer> divide_layers(const std::vector<Layer>& layers, int ranks);

/// Neighbouring ranks that have the same kv heads; 1 where each has its own, and for other layers.
int kv_sharers(const Layer& layer, int ranks);

/// Elements [local, local + count) of a rank's parameter are elements [whole, whole + count) of the whole one.
struct ElementRun {
  std::int64_t local = 0;
  std::int64_t whole = 0;
  std::int64_t count = 0;
  bool is_replica = false;  ///< a rank before this one has them too
};

/// What of `run` lies within [first, first + count) of the rank's parameter; its count is 0 where nothing does.
ElementRun within(const ElementRun& run, std::int64_t first, std::int64_t count);

/// All elements of the rank's share of a parameter (in the order of layer_parameters()), ascending in `local`; what
/// pads a vocabulary is in none.
std::vector<ElementRun> element_runs(const Layer& layer, std::size_t parameter, const TensorSeat& seat,
                                     const ExpertSeat& experts = {});

}}  // namespace plumb::executor
