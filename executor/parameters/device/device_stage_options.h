#pragma once
// Everything that makes a stage of layers on a device.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/parameters/device/device_shares.h"
#include "executor/parameters/device/optimizer_places.h"
#include "executor/parameters/device/stage_rebuild.h"
#include "executor/parameters/training_state.h"
#include "executor/spec/division/context_division.h"
#include "executor/spec/division/tensor_division.h"
#include "kernels/half_format.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

struct DeviceStageOptions {
  std::vector<Layer> layers;       ///< whole, not divided over the tensor group
  TensorSeat tensor;               ///< this rank's share of the layers
  CommunicatorSeat tensor_group;   ///< its seat in the tensor group's communicator
  ContextSeat context;             ///< this rank's share of each sequence, which is that of `work`
  CommunicatorSeat context_group;  ///< its seat in the context group's communicator
  ExpertSeat experts;              ///< this rank's share of the experts
  CommunicatorSeat expert_group;   ///< its seat in the communicator of the ranks that have the others
  int first_layer = 0;             ///< number of the stage's first layer in the model
  bool is_tied = false;  ///< the model's head and embedding share a table, of which this stage may have an end
  LayerWork work;        ///< of a micro-batch
  int slices = 1;        ///< of each sequence
  int microbatches = 0;
  std::int64_t first_sample = 0;   ///< number in the batch of the first sample of the replica's first micro-batch
  std::int64_t sample_stride = 0;  ///< samples from one micro-batch to the next
  std::optional<HalfFormat> half;  ///< format in which weights and activations are stored; none: fp32
  OptimizerSettings optimizer;
  bool is_optimizer_on_host = false;                      ///< its state comes to the device for each part's update
  std::int64_t update_window_bytes = kUpdateWindowBytes;  ///< room on the device for such a state
  std::uint64_t seed = 1;
  std::vector<float> gradient_scales;  ///< [micro-batch] 1 / tokens of its batch
  int steps = 1;                       ///< optimizer steps of a replay: several in an asynchronous schedule
  StageRebuild rebuild;
  std::vector<bool> kept_microbatches;  ///< kept_microbatches() of stage_rebuild.h
  bool agrees = false;  ///< the step depends on all stages' gradients: they are clipped, or the loss is scaled
  float clip_norm = 0;  ///< 0: not clipped
  DeviceShareOptions shares;
  CommunicatorSeat expert_copies;  ///< copies that have the same routed experts: the place of shares.copies for these
  const TrainingState* resume = nullptr;  ///< state with which the training goes on, which outlives the stage; null: it
                                          ///< begins
};

}}  // namespace plumb::executor
