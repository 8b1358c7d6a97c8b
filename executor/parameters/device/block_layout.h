#pragma once
// The parameters of one kind that a stage has on a device, as numbers: the common ones, which all copies of the stage
// have, or the routed experts, which only some copies have. The layout says where they lie layer after layer, which of
// them belong to this copy, and how many bytes they take.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/layers/device/packed_vectors.h"
#include "executor/layers/parameter_places.h"
#include "executor/parameters/device/device_shares.h"
#include "executor/parameters/device/optimizer_places.h"
#include "executor/parameters/training_state.h"
#include "executor/spec/division/tensor_division.h"
#include "kernels/half_format.h"

namespace plumb { inline namespace executor {

struct ParameterBlockOptions {
  ParameterPart part = ParameterPart::kCommon;
  TensorSeat tensor;               ///< this rank's share of the layers
  ExpertSeat experts;              ///< this rank's share of the experts
  int first_layer = 0;             ///< number of the stage's first layer in the model
  std::optional<HalfFormat> half;  ///< format in which weights are stored; none: fp32
  OptimizerPlacesOptions optimizer;
  std::uint64_t seed = 1;
  int steps = 1;  ///< optimizer steps of a replay
  DeviceShareOptions shares;
  const TrainingState* resume = nullptr;  ///< state with which the training goes on; null: it begins
};

class BlockLayout {
 public:
  /// `layers` are whole: not divided over the tensor group.
  BlockLayout(const std::vector<Layer>& layers, const ParameterBlockOptions& options);

  const ParameterBlockOptions& options() const { return options_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const ParameterPlaces& places() const { return places_; }
  const DeviceShares& shares() const { return shares_; }
  const OptimizerPlaces& optimizer() const { return optimizer_places_; }
  const PackedVectors& vectors() const { return vectors_; }

  bool is_half() const { return options_.half.has_value(); }
  std::int64_t element_bytes() const { return is_half() ? 2 : 4; }

  // Elements of the block.
  std::int64_t elements() const { return places_.first_element.back(); }
  ElementRange own() const { return shares_.own(); }
  ElementRange range_of(std::size_t layer) const;
  /// Returns the own elements in a range; count 0 if there are none.
  ElementRange own_in(ElementRange range) const;
  std::int64_t held_weights() const { return shares_.zero() < 3 ? elements() : own().count; }
  std::int64_t held_gradients() const { return shares_.zero() < 2 ? elements() : own().count; }

  /// True if 16-bit weights have their vectors in fp32 apart, as no whole master weights are on the device.
  bool has_vector_block() const;

  // Bytes.
  /// Bytes of all weights as they are stored, in whole words.
  std::int64_t stored_bytes() const;
  /// Bytes of one version of all weights, as a replaced version is kept or as UNSHARD gathers it: the stored weights
  /// and, in 16 bits, the vectors in fp32 behind them.
  std::int64_t version_bytes() const;
  std::int64_t weight_bytes() const { return held_weights() * element_bytes(); }
  std::int64_t gradient_bytes() const { return held_gradients() * std::int64_t{sizeof(float)}; }
  /// Bytes of everything that stays on the device for the whole run.
  std::int64_t held_bytes() const;
  /// Bytes of the gradients of all elements, where these are sharded and not reduced layer by layer; otherwise 0.
  std::int64_t whole_gradient_bytes() const;

 private:
  ParameterBlockOptions options_;
  std::vector<Layer> layers_;
  ParameterPlaces places_;
  DeviceShares shares_;
  OptimizerPlaces optimizer_places_;
  PackedVectors vectors_;
};

}}  // namespace plumb::executor
