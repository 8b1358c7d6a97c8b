#pragma once
// The positions of a stage's parameters in its blocks of weights and gradients, and the elements of these that each of
// the stage's copies owns when their state is sharded (ZeRO; Rajbhandari et al. 2020).

#include <cstdint>
#include <string>
#include <vector>

#include "executor/spec/division/tensor_division.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

/// A range of a block of parameters.
struct ElementRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Returns the element offset of the parameter of that name among the layer's parameters of the same part; -1 if there
/// is none.
std::int64_t parameter_offset(const Layer& layer, const std::string& name);

/// A parameter tensor, and the elements [first, first + count) of the stage's blocks that are its own.
struct PlacedParameter {
  std::size_t layer = 0;  ///< number in the stage
  std::size_t index = 0;  ///< position in layer_parameters()
  ParameterTensor tensor;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Parameters of one part, layer after layer, in the order of layer_parameters().
struct ParameterPlaces {
  std::vector<PlacedParameter> parameters;
  std::vector<std::int64_t> first_element;  ///< [layer] first element; at the end the number of elements of the block
};
/// Returns the positions for a tensor rank's `layers`; of their experts one of `expert_ranks` ranks has its share.
ParameterPlaces parameter_places(const std::vector<Layer>& layers, ParameterPart part = ParameterPart::kCommon,
                                 int expert_ranks = 1);

/// Returns the block's range of each gradient bucket, in the order in which the buckets are complete: from the last
/// layer to the first. `bucket_layers` are the layers of each.
std::vector<ElementRange> bucket_ranges(const ParameterPlaces& places, const std::vector<int>& bucket_layers);

/// The elements of a parameter that lie in a range of the block.
struct ParameterPiece {
  std::size_t parameter = 0;         ///< position in ParameterPlaces
  std::int64_t first_in_tensor = 0;  ///< element
  std::int64_t first_in_range = 0;   ///< element
  std::int64_t count = 0;            ///< at least 1
};
std::vector<ParameterPiece> pieces_in(const ParameterPlaces& places, ElementRange range);

/// The elements of the stage's blocks that each member owns, and this member's number.
struct ParameterShares {
  std::vector<std::int64_t> bounds;  ///< [members + 1]: member i owns [bounds[i], bounds[i+1])
  int member = 0;

  ElementRange own() const {
    const auto at = static_cast<std::size_t>(member);
    return {bounds[at], bounds[at + 1] - bounds[at]};
  }
};

/// Returns the elements of a tensor rank's block that do not count in the norm of the gradients, ascending: those that a
/// rank before it in the tensor group has too (norms, and kv heads that several ranks have), and biases of picks.
/// `layers` are whole.
std::vector<ElementRange> uncounted_elements(const ParameterPlaces& places, const std::vector<Layer>& layers,
                                             const TensorSeat& seat, const ExpertSeat& experts);

/// Returns the boundaries of equal shares of ceil(elements / members) elements, made even so that two 16-bit elements
/// fill a word. The last shares are shorter, and may be empty.
std::vector<std::int64_t> shares_by_element(std::int64_t elements, int members);

/// Returns the boundaries of shares of whole, neighbouring layers; they are those nearest to equal shares.
std::vector<std::int64_t> shares_by_layer(const ParameterPlaces& places, int members);

}}  // namespace plumb::executor
