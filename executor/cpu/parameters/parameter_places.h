#pragma once
// Where the parameters of a stage lie in its blocks of weights and gradients, and which elements of these each of the
// stage's copies owns when their state is sharded (ZeRO; Rajbhandari et al. 2020).

#include <cstdint>
#include <vector>

#include "executor/cpu/layers/layer.h"
#include "kernels/layer/layer.h"

namespace plumb { inline namespace executor {

/// A parameter tensor, and the elements [first, first + count) of the stage's blocks that are its own.
struct PlacedParameter {
  std::size_t layer = 0;  ///< in the stage
  std::size_t index = 0;  ///< in layer_parameters()
  ParameterTensor tensor;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Parameters of one part layer after layer, in the order of layer_parameters().
struct ParameterPlaces {
  std::vector<PlacedParameter> parameters;
  std::vector<std::int64_t> first_element;  ///< [layer], and at the end the elements of the block
};
/// `layers` are a tensor rank's, of whose experts one of `expert_ranks` ranks has its share.
ParameterPlaces parameter_places(const std::vector<Layer>& layers, ParameterPart part = ParameterPart::kCommon,
                                 int expert_ranks = 1);

/// Returns the block's range of each gradient bucket, in the order in which the buckets are complete: from the last
/// layer to the first. `bucket_layers` are the layers of each.
std::vector<ElementRange> bucket_ranges(const ParameterPlaces& places, const std::vector<int>& bucket_layers);

/// The elements of a parameter that lie in a range of the block.
struct ParameterPiece {
  std::size_t parameter = 0;         ///< in ParameterPlaces
  std::int64_t first_in_tensor = 0;  ///< element
  std::int64_t first_in_range = 0;   ///< element
  std::int64_t count = 0;            ///< at least 1
};
std::vector<ParameterPiece> pieces_in(const ParameterPlaces& places, ElementRange range);

/// Who owns what of the stage's blocks, and who this is.
struct ParameterShares {
  std::vector<std::int64_t> bounds;  ///< [members + 1]: member i owns [bounds[i], bounds[i+1])
  int member = 0;

  ElementRange own() const {
    const auto at = static_cast<std::size_t>(member);
    return {bounds[at], bounds[at + 1] - bounds[at]};
  }
};

/// The elements of a tensor rank's block that a rank before it in the tensor group has too, ascending: norms, kv heads
/// that several have. `layers` are whole.
std::vector<ElementRange> replicated_elements(const ParameterPlaces& places, const std::vector<Layer>& layers,
                                              const TensorSeat& seat, const ExpertSeat& experts);

/// Equal shares of ceil(elements / members) elements, made even so that two 16-bit elements fill a word; the last ones
/// are shorter, and may be empty.
std::vector<std::int64_t> shares_by_element(std::int64_t elements, int members);

/// Shares of whole layers, of neighbours: the boundaries are those nearest to equal shares.
std::vector<std::int64_t> shares_by_layer(const ParameterPlaces& places, int members);

}}  // namespace plumb::executor
