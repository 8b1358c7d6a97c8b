#pragma once
// Parameters of one kind that a stage has on a device: those that all of its copies have, or its routed experts, which
// only the copies with the same ones have. Where they lie layer after layer, which of them are this copy's, and their
// weights, gradients and optimizer's state. What copies exchange of them is in exchange/device_shares.h.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/cpu/parameters/parameter_places.h"
#include "executor/device/calls/recorded_calls.h"
#include "executor/device/device_machine.h"
#include "executor/device/exchange/device_shares.h"
#include "executor/device/stage/device_update.h"
#include "executor/device/stage/optimizer_places.h"
#include "executor/device/stage/packed_vectors.h"
#include "executor/division/tensor_division.h"
#include "executor/run_result.h"
#include "executor/training/training_state.h"

namespace plumb { inline namespace executor {

struct ParameterBlockOptions {
  ParameterPart part = ParameterPart::kCommon;
  TensorSeat tensor;   ///< whose share of the layers this is
  ExpertSeat experts;  ///< likewise of their experts
  int first_layer = 0;
  std::optional<HalfFormat> half;
  OptimizerPlacesOptions optimizer;
  std::uint64_t seed = 1;
  int steps = 1;
  DeviceShareOptions shares;
  const TrainingState* resume = nullptr;
};

/// A layer's parameters as its passes read them. vectors: the layer's first, or behind `packed` its vectors alone, from
/// number `first_packed` on (DeviceLayerCall).
struct StoredWeights {
  const std::byte* stored = nullptr;
  const float* vectors = nullptr;
  const PackedVectors* packed = nullptr;
  std::int64_t first_packed = 0;
};

class ParameterBlock {
 public:
  /// `layers` as a whole.
  ParameterBlock(const std::vector<Layer>& layers, const ParameterBlockOptions& options);

  const ParameterPlaces& places() const { return places_; }
  const DeviceShares& shares() const { return shares_; }
  std::int64_t elements() const { return places_.first_element.back(); }
  ElementRange range_of(std::size_t layer) const;

  // Bytes. Of one version of all weights, as others replace them or UNSHARD gathers them; of what is held here.
  std::int64_t version_bytes() const;
  std::int64_t weight_bytes() const { return held_weights() * element_bytes_; }
  std::int64_t gradient_bytes() const { return held_gradients() * std::int64_t{sizeof(float)}; }
  std::int64_t held_bytes() const;
  /// Of the optimizer's state and master weights, wherever they are; of these in the host's memory.
  std::int64_t optimizer_bytes() const { return optimizer_places_.state_bytes(); }
  std::int64_t host_bytes() const { return optimizer_places_.is_on_host() ? optimizer_places_.block_bytes() : 0; }
  std::int64_t update_workspace_bytes() const { return optimizer_places_.workspace_bytes(); }
  /// Of gradients of all elements, where they are sharded and not reduced layer by layer.
  std::int64_t whole_gradient_bytes() const;

  void settle(DeviceMachine& machine, bool capture_gradients);

  /// `version`: [version_bytes()] replaced or gathered weights; null: the newest. `moved`: layer by layer, the room
  /// that all passes have (place_moved()).
  StoredWeights weights_of(std::size_t layer, const std::byte* version, std::byte* moved) const;
  /// `whole`: gradients of all elements where they are sharded.
  float* gradients_of(std::size_t layer, float* whole, std::byte* moved) const;
  /// Of a range of which this copy has all, or its share: null where the gradients of others are elsewhere.
  float* gradients() const { return gradients_; }

  void open_gradients(DeviceKernels& kernels, float* whole) const;
  void reduce(CallRecorder& recorder, float* whole, std::size_t bucket) const;
  void gather(CallRecorder& recorder, std::byte* gathered) const;

  // Layer by layer (ZeRO 2 and 3; device_stage_layers.cpp): two layers' weights, and one's gradients.
  std::int64_t moved_weight_bytes() const { return 2 * (room_.stored + room_.vectors); }
  std::int64_t moved_gradient_bytes() const { return room_.gradients; }
  /// Where the block has them in the room.
  void place_moved(std::int64_t weights, std::int64_t gradients);
  void gather_layer(CallRecorder& recorder, std::byte* moved, std::size_t layer) const;
  void widen_layer(DeviceKernels& kernels, std::byte* moved, std::size_t layer) const;
  void open_layer(DeviceKernels& kernels, std::byte* moved, std::size_t layer) const;
  void leave_vectors(DeviceKernels& kernels, std::byte* moved, std::size_t layer) const;
  void take_vectors(DeviceKernels& kernels, std::byte* moved, std::size_t layer) const;
  void exchange_gradients(CallRecorder& recorder, std::byte* moved, std::size_t layer) const;
  void add_share(DeviceKernels& kernels, std::byte* moved, std::size_t layer) const;

  /// Gradients of which this rank says how large they are, so that of all ranks each element counts once; never those
  /// of `others`.
  void find_measured(ElementRange others);
  std::int64_t partial_count() const { return std::ssize(measured_) * kGradientPieces; }
  void measure_gradients(DeviceKernels& kernels, float* partials, float limit) const;

  void keep_version(DeviceKernels& kernels, std::byte* replaced) const;
  /// `step`: which one of the replay. constants: update_constants()
  void update(CallRecorder& recorder, int step, const StepNumbers* numbers, const float* constants,
              std::byte* workspace) const;

  // Between replays (parameter_block_state.cpp).
  void copy_weights(DeviceMachine& machine, ModelValues& model) const;
  void copy_gradients(DeviceMachine& machine, ModelValues& model, int step, float factor) const;
  void save(DeviceMachine& machine, TrainingState& state) const;

 private:
  struct LayerRoom {  // bytes of a layer at most
    std::int64_t stored = 0, vectors = 0, gradients = 0;
  };

  std::int64_t held_weights() const { return shares_.zero() < 3 ? elements() : shares_.own().count; }
  std::int64_t held_gradients() const { return shares_.zero() < 2 ? elements() : shares_.own().count; }
  std::int64_t stored_bytes() const;
  /// Whether 16-bit weights have their vectors in fp32 apart, as no whole master weights are on the device.
  bool has_vector_block() const;
  /// Within blocks that hold own elements alone, or all; null: on the host.
  float* own_master() const;
  float* own_gradients() const;
  LayerRoom layer_room() const;
  std::byte* gathered_words(std::byte* moved, std::size_t layer) const;
  ElementRange own_in(ElementRange range) const;

  std::vector<float> initial_weights() const;
  std::vector<float> first_weights() const;
  std::vector<float> downloaded(DeviceMachine& machine, const float* own) const;
  std::vector<float> downloaded_master(DeviceMachine& machine) const;
  void copy_values(ModelValues& model, std::span<const float> own, float factor) const;
  void write_state(DeviceMachine& machine, StatePlace at, std::span<const std::byte> bytes);
  std::vector<std::byte> read_state(DeviceMachine& machine) const;
  void restore_state(DeviceMachine& machine);
  PartMemory memory_of(const UpdatePart& part, const StepNumbers* numbers, const float* constants,
                       std::byte* workspace) const;
  void update_from_host(CallRecorder& recorder, const StepNumbers* numbers, const float* constants,
                        std::byte* workspace) const;
  template <class Visit>
  void for_each_own_run(Visit visit) const;
  template <class Values>
  std::vector<float> block_of(Values values) const;
  std::vector<ElementRun> runs_of(const PlacedParameter& parameter) const;

  ParameterBlockOptions options_;
  std::vector<Layer> layers_;  // as a whole
  std::int64_t element_bytes_;
  ParameterPlaces places_;
  DeviceShares shares_;
  OptimizerPlaces optimizer_places_;
  PackedVectors vectors_;
  LayerRoom room_;
  std::int64_t moved_weights_ = 0, moved_gradients_ = 0;  // bytes from the room's first
  std::vector<ElementRange> measured_;

  // On the device.
  std::byte* stored_weights_ = nullptr;  // [elements], or where they are sharded [own]; master_ itself in fp32
  float* master_ = nullptr;              // likewise; in 16 bits [own], or on the host among the optimizer's state
  float* gradients_ = nullptr;           // [elements], or where they are sharded [own]
  std::byte* state_ = nullptr;           // optimizer_places_' block, perhaps in the host's memory
  float* vector_block_ = nullptr;        // [vectors] in 16 bits where the master copy is sharded or on the host
  float* waiting_vectors_ = nullptr;     // [vectors] layer by layer: gradients of I that wait for W
  float* captured_ = nullptr;            // [steps, own]
};

}}  // namespace plumb::executor
