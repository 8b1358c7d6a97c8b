#pragma once
// All parameters of a stage on a device: the block of common ones and, if a layer has experts, the block of routed
// ones. Where a pass or a version has memory for both, the blocks lie one behind the other, each from an aligned byte
// on.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/parameters/device/device_stage_options.h"
#include "executor/parameters/device/parameter_block.h"

namespace plumb { inline namespace executor {

/// Bytes of the arena in which a pass finds parameters that are not in their blocks.
struct PassParameters {
  const std::byte* weights = nullptr;  ///< a replaced version, or where they are sharded the whole ones; null: newest
  float* whole_gradients = nullptr;    ///< where they are sharded: gradients of all elements until they are reduced
  std::byte* moved = nullptr;          ///< layer by layer: room of two layers' weights and one layer's gradients
};

class StageParameters {
 public:
  explicit StageParameters(const DeviceStageOptions& options);

  const std::vector<ParameterBlock>& blocks() const { return blocks_; }
  const ParameterBlock& common() const { return blocks_.front(); }
  bool has_parameters(std::size_t layer) const;

  // Bytes.
  std::int64_t weight_bytes() const;
  std::int64_t gradient_bytes() const;
  std::int64_t held_bytes() const;
  /// Bytes of one version of the weights that others have replaced.
  std::int64_t version_bytes() const;
  /// Bytes of the weights that UNSHARD gathers for the whole stage; 0 where it gathers none.
  std::int64_t unsharded_bytes() const;
  /// Bytes of all gradients from the first that is added to their reduction, where they are sharded; otherwise 0.
  std::int64_t whole_gradient_bytes() const;
  /// Bytes of the optimizer's state and master weights, wherever they are; and of those in the host's memory.
  std::int64_t optimizer_bytes() const;
  std::int64_t host_bytes() const;
  /// Bytes that an OPTIMIZER_STEP needs while it runs.
  std::int64_t update_workspace_bytes() const;
  /// Bytes of the room of layers that a pass moves, in front of its workspace.
  std::int64_t moved_bytes(bool is_backward) const;

  void settle(DeviceMachine& machine, bool capture_gradients);

  /// Returns a layer's parameters and gradients in a block.
  StoredWeights weights_of(std::size_t block, std::size_t layer, const PassParameters& pass) const;
  float* gradients_of(std::size_t block, std::size_t layer, const PassParameters& pass) const;

  /// Fills whole gradients with zeros.
  void open_gradients(DeviceKernels& kernels, float* whole_gradients) const;
  /// REDUCE_GRAD of a bucket; UNSHARD to `gathered` [version_bytes()]. Neither does anything where the stage has one
  /// copy.
  void reduce(CallRecorder& recorder, float* whole_gradients, std::size_t bucket) const;
  void gather(CallRecorder& recorder, std::byte* gathered) const;

  /// Finds the gradients that this rank measures, those of `others` among the common ones excepted.
  void find_measured(ElementRange others);
  std::int64_t partial_count() const;
  /// partials: [partial_count()] sums of squares of those gradients. A gradient beyond `limit` counts as an overflow.
  void measure_gradients(DeviceKernels& kernels, float* partials, float limit) const;

  /// Copies the weights to `replaced` [version_bytes()].
  void keep_version(DeviceKernels& kernels, std::byte* replaced) const;
  void update(CallRecorder& recorder, int step, const UpdateInputs& inputs) const;

  // Between replays, as the blocks do.
  void copy_weights(DeviceMachine& machine, ModelValues& model) const;
  void copy_gradients(DeviceMachine& machine, ModelValues& model, int step, float factor) const;
  void save(DeviceMachine& machine, TrainingState& state) const;

 private:
  void place_rooms();
  template <class Count>
  std::int64_t sum_of(Count count) const;
  template <class Count>
  std::int64_t stacked(Count count) const;
  const std::byte* version_of(std::size_t block, const std::byte* weights) const;
  float* whole_gradients_of(std::size_t block, float* whole_gradients) const;

  std::vector<ParameterBlock> blocks_;
  std::int64_t moved_weight_bytes_ = 0, moved_gradient_bytes_ = 0;  // of all blocks
};

}}  // namespace plumb::executor
