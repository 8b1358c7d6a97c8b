#pragma once
// A stage of layers on a device: its parameters, gradients and moments, and its passes over memory that the call names.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/cpu/parameter_places.h"
#include "executor/device/calls/recorded_calls.h"
#include "executor/device/device_machine.h"
#include "executor/device/exchange/device_shares.h"
#include "executor/device/layers/device_layer.h"
#include "executor/device/stage/optimizer_places.h"
#include "executor/device/stage/packed_vectors.h"
#include "executor/device/stage/stage_layout.h"
#include "executor/device/stage/stage_rebuild.h"
#include "executor/division/tensor_division.h"
#include "executor/run_result.h"
#include "executor/stage.h"
#include "schedules/cost_table.h"

namespace plumb {

struct DeviceStageOptions {
  std::vector<Layer> layers;  ///< as a whole
  TensorSeat tensor;          ///< whose share of them this is
  NcclSeat tensor_group;      ///< the same as a group
  ContextSeat context;        ///< which tokens of each sequence are here: those of `work`
  NcclSeat context_group;     ///< likewise
  int first_layer = 0;        ///< its number in the model
  bool is_tied = false;       ///< the model's head and embedding share a table: this stage may have an end of it
  LayerWork work;             ///< of a micro-batch
  int microbatches = 0;
  std::int64_t first_sample = 0;   ///< of the replica's first micro-batch, in the batch
  std::int64_t sample_stride = 0;  ///< from one micro-batch to the next
  std::optional<HalfFormat> half;  ///< how weights and activations are stored; none: fp32
  OptimizerSettings optimizer;
  bool is_optimizer_on_host = false;  ///< its state, which comes to the device for each part's update
  std::int64_t update_window_bytes = kUpdateWindowBytes;  ///< then
  std::uint64_t seed = 1;
  std::vector<float> gradient_scales;  ///< [micro-batch] 1 / tokens of its batch
  int steps = 1;                       ///< optimizer steps of a replay: several in an asynchronous schedule
  StageRebuild rebuild;
  std::vector<bool> kept_microbatches;  ///< stage_rebuild.h
  bool agrees = false;  ///< the step depends on all stages' gradients: they are clipped, or the loss is scaled
  float clip_norm = 0;  ///< 0: not clipped
  DeviceShareOptions shares;
  const TrainingState* resume = nullptr;  ///< where it goes on; null: at the beginning. Outlives the stage.
};

/// Layer by layer (ZeRO 2 and 3): pieces of the pass that is recorded.
struct MovedLayers {
  std::optional<std::size_t> ahead;  ///< the layer whose weights are gathered ahead
  std::int32_t gather = -1;          ///< that piece
  std::int32_t reduction = -1;       ///< of the gradients that have the place last; -1: none
};

/// What a pass over one micro-batch works on.
struct DevicePass {
  int microbatch = 0;
  CallRecorder* recorder = nullptr;  ///< where tensor ranks exchange
  std::byte* early = nullptr;        ///< what F keeps, until I and until W
  std::byte* late = nullptr;
  std::byte* rebuilt_early = nullptr;  ///< what R, or the backward itself, computes again, likewise
  std::byte* rebuilt_late = nullptr;
  std::byte* workspace = nullptr;
  const std::byte* incoming = nullptr;  ///< the stage's input (F), or the gradient of its output (I); null: none
  std::byte* outgoing = nullptr;        ///< its output (F), or the gradient of its input (I); null: none
  const std::byte* weights = nullptr;   ///< a replaced version of them, or where they are sharded the whole ones; null:
                                        ///< the newest
  float* whole_gradients = nullptr;     ///< gradients that are sharded: those of all elements, until they are reduced
  std::byte* moved = nullptr;           ///< layer by layer: two layers' weights, and one's gradients
  MovedLayers* moves = nullptr;         ///< likewise
};

class DeviceStage {
 public:
  explicit DeviceStage(const DeviceStageOptions& options);

  /// Bytes by kind, as the schedule's arena is planned with, and of messages.
  StageMemory memory() const;
  /// [micro-batch] those of a micro-batch, where they are not alike; empty: memory() has them.
  std::vector<StageMemory> microbatch_memory() const;
  /// Of all gradients from the first that is added to their reduction, where they are sharded; 0: they are not.
  std::int64_t whole_gradient_bytes() const;
  std::int64_t input_bytes() const;
  std::int64_t output_bytes() const;
  /// Of a pass's workspace, in front of what layers use (device_stage_layers.cpp): what is moved layer by layer.
  std::int64_t moved_bytes(bool is_backward) const;

  /// Of one version of the weights that others have replaced.
  std::int64_t version_bytes() const;

  /// Of everything that stays on the device for the whole run.
  std::int64_t held_bytes() const;
  /// Of the optimizer's state and master weights, wherever they are; of these in the host's memory.
  std::int64_t optimizer_bytes() const { return optimizer_places_.state_bytes(); }
  std::int64_t host_bytes() const { return optimizer_places_.is_on_host() ? optimizer_places_.block_bytes() : 0; }
  /// While an OPTIMIZER_STEP runs.
  std::int64_t update_workspace_bytes() const { return optimizer_places_.workspace_bytes(); }

  /// Allocates, and uploads the first weights: the initial ones, or those with which a training goes on. Where
  /// gradients are captured, the optimizer's step copies what it consumes.
  void settle(DeviceMachine& machine, bool capture_gradients = false);

  /// The tokens and targets of all micro-batches [microbatches * T], before a replay; only where a layer reads them.
  /// Tokens whose rows another tensor rank has are left out. Of samples that are no text the numbers of all
  /// [microbatches, T, ...], and their labels, as targets, or the numbers of their targets.
  bool reads_tokens() const;
  bool reads_samples() const;
  bool reads_targets() const;
  bool reads_sample_targets() const;
  bool ends_model() const { return reads_targets() || reads_sample_targets(); }
  void upload_tokens(DeviceMachine& machine, std::span<const std::int32_t> tokens) const;
  void upload_targets(DeviceMachine& machine, std::span<const std::int32_t> targets) const;
  void upload_samples(DeviceMachine& machine, std::span<const float> samples) const;
  void upload_sample_targets(DeviceMachine& machine, std::span<const float> targets) const;

  void forward(DeviceKernels& kernels, const DevicePass& pass) const;
  /// R: all that is computed again, from what F has kept.
  void recompute(DeviceKernels& kernels, const DevicePass& pass) const;
  void input_grad(DeviceKernels& kernels, const DevicePass& pass) const;
  /// Says so where a bucket of gradients is complete, if it is told to.
  void weight_grad(DeviceKernels& kernels, const DevicePass& pass, CallRecorder* buckets = nullptr) const;
  /// B: I and W in one. `recomputes`: no R was there.
  void backward(DeviceKernels& kernels, const DevicePass& pass, bool recomputes, CallRecorder* buckets = nullptr) const;
  /// Before the first that adds to gradients that are sharded.
  void open_gradients(DeviceKernels& kernels, const DevicePass& pass) const;
  /// REDUCE_GRAD of a bucket; UNSHARD. Nothing where the stage has one copy.
  void reduce(CallRecorder& recorder, const DevicePass& pass, std::size_t bucket) const;
  /// gathered: [version_bytes()] of weights that are sharded.
  void gather(CallRecorder& recorder, std::byte* gathered) const;

  // Before the first step, once gradients are complete (joint_step.cpp).

  /// The gradient of the stage's end of a tied table, where it has it: [count of tied_table()], once it is gathered
  /// from the stage's copies; finish_tied() takes back the own share of what was made of it.
  ElementRange tied_table(ModelEnd end) const { return tied_tables_[static_cast<std::size_t>(end)]; }
  float* tied_gradients(ModelEnd end) const;
  void gather_tied(CallRecorder& recorder, ModelEnd end) const;
  void finish_tied(DeviceKernels& kernels, ModelEnd end) const;
  /// Sums of squares of the gradients that this rank speaks for, so that of all ranks each element counts once.
  /// partials: [partial_count()]
  void measure_gradients(DeviceKernels& kernels, float* partials) const;
  std::int64_t partial_count() const { return std::ssize(measured_) * kGradientPieces; }

  /// `whole`: what all gradients have measured, where the step depends on it. `step`: which one of the replay.
  /// `replaced` [version_bytes()] gets the weights as they were, where it is not null. workspace:
  /// [update_workspace_bytes()]
  void optimizer_step(DeviceKernels& kernels, int step, std::byte* replaced, const StepNumbers* whole,
                      std::byte* workspace) const;

  /// Before a replay: what its steps have in numbers. After it: what became of them; steps that were not skipped count.
  void begin_step(DeviceMachine& machine, int replay, float loss_scale);
  StepNumbers end_step(DeviceMachine& machine);

  /// Summed losses of each micro-batch in the last replay; zeros without a head.
  std::vector<double> losses(DeviceMachine& machine) const;
  /// Likewise load-balancing losses, if a layer has experts.
  bool has_experts() const { return expert_layers_ > 0; }
  std::vector<double> balance_losses(DeviceMachine& machine) const;

  /// Writes the elements for which this rank speaks into the model's, fp32: [layer of the model][parameter][element];
  /// gradients as they reached the optimizer in one step of the last replay, behind end_step().
  void copy_weights(DeviceMachine& machine, ModelValues& model) const;
  void copy_gradients(DeviceMachine& machine, ModelValues& model, int step) const;

  /// Writes the elements for which this rank speaks, their moments and the number of updates into a checkpoint.
  void save(DeviceMachine& machine, TrainingState& state) const;

 private:
  struct PlacedLayer {
    std::unique_ptr<DeviceLayer> layer;
    DeviceLayerBytes bytes{};
    std::int64_t constants = 0;      // elements from the stage's first
    std::int64_t expert_layers = 0;  // before it
  };
  /// Where a layer's tensors of a micro-batch lie.
  struct LayerMemory {
    std::byte* early = nullptr;
    std::byte* late = nullptr;
    std::byte* cheap = nullptr;
  };

  void place_layers();
  const StageLayout& layout_of(int microbatch) const;
  DeviceTensorShare share_of(std::size_t layer) const;
  LayerMemory memory_of(const DevicePass& pass, std::size_t layer) const;
  LayerMemory forward_memory(const DevicePass& pass, std::size_t layer) const;
  template <class MemoryOf>
  void run_group(DeviceKernels& kernels, const DevicePass& pass, const StageLayout::Group& group,
                 const std::byte* input, std::byte* output, MemoryOf memory_of) const;
  void rebuild_group(DeviceKernels& kernels, const DevicePass& pass, const StageLayout::Group& group) const;
  void complete_layer(CallRecorder* buckets, std::size_t layer) const;

  // Layer by layer (device_stage_layers.cpp).
  struct LayerRoom {  // bytes of a layer at most
    std::int64_t stored = 0, vectors = 0, gradients = 0;
  };
  struct GatheredLayer {
    std::byte* weights = nullptr;
    float* vectors = nullptr;
  };
  ElementRange range_of(std::size_t layer) const;
  LayerRoom layer_room() const;
  std::byte* gathered_words(const DevicePass& pass, std::size_t layer) const;
  GatheredLayer gathered_layer(const DevicePass& pass, std::size_t layer) const;
  void fetch(const DevicePass& pass, std::size_t layer, std::optional<std::size_t> next) const;
  void fetch_forward(const DevicePass& pass, std::size_t layer) const;
  void fetch_backward(const DevicePass& pass, std::size_t layer) const;
  void begin_gather(const DevicePass& pass, std::size_t layer) const;
  void open_layer(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const;
  void leave_vectors(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const;
  void take_vectors(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const;
  void reduce_layer(const DevicePass& pass, std::size_t layer) const;
  float* layer_gradients(const DevicePass& pass, std::size_t layer) const;

  void take_output_gradient(DeviceKernels& kernels, const DevicePass& pass) const;
  void layer_backward(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer, std::byte* gradient,
                      CallRecorder* buckets) const;
  void find_tied_tables();
  void find_measured();
  std::int64_t tied_buffer_bytes() const;
  ElementRange own_of(ElementRange range) const;
  DeviceLayerCall call_of(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer,
                          const LayerMemory& memory) const;
  std::int64_t elements() const { return places_.first_element.back(); }
  void copy_values(ModelValues& model, std::span<const float> own, float factor) const;
  std::vector<float> downloaded(DeviceMachine& machine, const float* own) const;
  std::vector<float> downloaded_master(DeviceMachine& machine) const;
  std::vector<double> sums_of_losses(DeviceMachine& machine, const float* losses, std::int64_t layers) const;
  std::vector<float> initial_weights() const;
  std::vector<float> first_weights() const;
  void write_state(DeviceMachine& machine, StatePlace at, std::span<const std::byte> bytes);
  std::vector<std::byte> read_state(DeviceMachine& machine) const;
  void restore_state(DeviceMachine& machine);
  void update_part(DeviceKernels& kernels, const UpdatePart& part, const StepNumbers* numbers,
                   std::byte* workspace) const;
  template <class Visit>
  void for_each_own_run(Visit visit) const;
  template <class Values>
  std::vector<float> block_of(Values values) const;
  std::int64_t sample_bytes() const;
  std::int64_t sample_target_elements() const;
  void allocate_data(DeviceMachine& machine);
  std::int64_t data_bytes() const;
  std::int64_t stored_bytes() const;
  /// Whether 16-bit weights have their vectors in fp32 apart, as no whole master weights are on the device.
  bool has_vector_block() const {
    return options_.half && (shares_.zero() > 0 || optimizer_places_.has_master_on_host());
  }
  /// Within blocks that hold own elements alone, or all; null: on the host.
  float* own_master() const;
  float* own_gradients() const;

  DeviceStageOptions options_;
  std::vector<Layer> model_layers_;  // as a whole; those in options_ are the rank's share
  std::int64_t element_bytes_;
  std::int64_t tokens_;  // T
  ParameterPlaces places_;
  DeviceShares shares_;
  OptimizerPlaces optimizer_places_;
  PackedVectors vectors_;
  std::vector<PlacedLayer> layers_;
  StageLayout layout_, kept_layout_;  // the latter of micro-batches that are kept where others are computed again
  std::int64_t expert_layers_ = 0;
  LayerRoom layer_room_;
  std::array<ElementRange, 2> tied_tables_;  // [end] of the stage's blocks; count 0: none here
  std::vector<ElementRange> measured_;       // likewise: gradients that this rank speaks for
  std::vector<float> constants_;
  std::size_t update_constants_ = 0;  // where the optimizer's begin
  std::int64_t updates_ = 0;
  StepNumbers last_numbers_;

  // On the device.
  std::byte* stored_weights_ = nullptr;  // [elements], or where they are sharded [own]; master_ itself in fp32
  float* master_ = nullptr;              // likewise; in 16 bits [own], or on the host among the optimizer's state
  float* gradients_ = nullptr;           // [elements], or where they are sharded [own]
  std::byte* state_ = nullptr;           // optimizer_places_' block, perhaps in the host's memory
  float* vector_block_ = nullptr;        // [vectors] in 16 bits where the master copy is sharded or on the host
  float* device_constants_ = nullptr;
  std::int32_t* token_numbers_ = nullptr;   // [microbatches, T]
  std::int32_t* target_numbers_ = nullptr;  // likewise
  std::byte* samples_ = nullptr;            // [microbatches, T, ...], as activations are stored
  float* sample_targets_ = nullptr;         // [microbatches, T, width]
  float* losses_ = nullptr;                 // likewise
  float* balance_losses_ = nullptr;         // [expert layers, microbatches, T]
  float* waiting_vectors_ = nullptr;        // [vectors] layer by layer: gradients of I that wait for W
  float* captured_ = nullptr;               // [steps, own]
  StepNumbers* numbers_ = nullptr;          // [steps]
  std::array<float*, 2> whole_tied_ = {};   // [end] gradients of a table of which gradients_ has a share
};

}  // namespace plumb
