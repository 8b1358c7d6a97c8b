#pragma once
// A stage of layers on a device: its parameters, gradients and moments, and its passes over memory that the call names.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/device/calls/recorded_calls.h"
#include "executor/device/device_machine.h"
#include "executor/device/exchange/device_shares.h"
#include "executor/device/layers/device_layer.h"
#include "executor/device/stage/parameter_block.h"
#include "executor/device/stage/stage_layout.h"
#include "executor/device/stage/stage_rebuild.h"
#include "executor/division/tensor_division.h"
#include "executor/run_result.h"
#include "executor/stage.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace executor {

struct DeviceStageOptions {
  std::vector<Layer> layers;  ///< as a whole
  TensorSeat tensor;          ///< whose share of them this is
  NcclSeat tensor_group;      ///< the same as a group
  ContextSeat context;        ///< which tokens of each sequence are here: those of `work`
  NcclSeat context_group;     ///< likewise
  ExpertSeat experts;         ///< which of the experts are here
  NcclSeat expert_group;      ///< those who have the others
  int first_layer = 0;        ///< its number in the model
  bool is_tied = false;       ///< the model's head and embedding share a table: this stage may have an end of it
  LayerWork work;             ///< of a micro-batch
  int slices = 1;             ///< that each sequence of it comes in
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
  NcclSeat expert_copies;  ///< in the place of shares.copies, of routed experts: the copies that have the same ones
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
  int slice = 0;
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
  std::byte* sequences = nullptr;       ///< what slices keep of their sequences
  float* sequence_gradients = nullptr;  ///< what they owe to it
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
  /// Of what the slices of a micro-batch keep of its sequences, from the first F to the last I; and of the gradients
  /// that they add to, from the first I on.
  std::int64_t sequence_bytes() const { return sequence_bytes_.sequences; }
  std::int64_t sequence_gradient_bytes() const { return sequence_bytes_.sequence_gradients; }
  /// Of a slice; of the largest one.
  std::int64_t input_bytes(int slice) const;
  std::int64_t output_bytes(int slice) const;
  std::int64_t input_bytes() const { return input_bytes(largest_slice_); }
  std::int64_t output_bytes() const { return output_bytes(largest_slice_); }
  /// Of a pass's workspace, in front of what layers use (device_stage_layers.cpp): what is moved layer by layer.
  std::int64_t moved_bytes(bool is_backward) const;

  /// Of one version of the weights that others have replaced.
  std::int64_t version_bytes() const;

  /// Of everything that stays on the device for the whole run.
  std::int64_t held_bytes() const;
  /// Of the optimizer's state and master weights, wherever they are; of these in the host's memory.
  std::int64_t optimizer_bytes() const;
  std::int64_t host_bytes() const;
  /// While an OPTIMIZER_STEP runs.
  std::int64_t update_workspace_bytes() const;

  /// Allocates, and uploads the first weights: the initial ones, or those with which a training goes on. Where
  /// gradients are captured, the optimizer's step copies what it consumes.
  void settle(DeviceMachine& machine, bool capture_gradients = false);

  /// The tokens and targets of all micro-batches [microbatches * T], each slice by itself, before a replay; only where
  /// a layer reads them. Tokens whose rows another tensor rank has are left out. Of samples that are no text the
  /// numbers of all [microbatches, T, ...], and their labels, as targets, or the numbers of their targets.
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
  /// `recomputes`: no R was there, and what is to be computed again is.
  void input_grad(DeviceKernels& kernels, const DevicePass& pass, bool recomputes) const;
  /// Says so where a bucket of gradients is complete, if it is told to.
  void weight_grad(DeviceKernels& kernels, const DevicePass& pass, CallRecorder* buckets = nullptr) const;
  /// B: I and W in one.
  void backward(DeviceKernels& kernels, const DevicePass& pass, bool recomputes, CallRecorder* buckets = nullptr) const;
  /// Before the first that adds to gradients that are sharded; to those of sequences.
  void open_gradients(DeviceKernels& kernels, const DevicePass& pass) const;
  void open_sequence_gradients(DeviceKernels& kernels, const DevicePass& pass) const;
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
  std::int64_t partial_count() const;

  /// `whole`: what all gradients have measured, where the step depends on it. `step`: which one of the replay.
  /// `replaced` [version_bytes()] gets the weights as they were, where it is not null. workspace:
  /// [update_workspace_bytes()]
  void optimizer_step(CallRecorder& kernels, int step, std::byte* replaced, const StepNumbers* whole,
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
    DeviceLayerBytes before{};       // sequences' bytes
  };
  /// The layers as they work on a slice of a micro-batch, or on all of it.
  struct Slice {
    int number = 0;
    TokenRange shared;     // of each sequence
    ContextTokens tokens;  // of these, here
    LayerWork work;
    std::int64_t first_row = 0;  // among the micro-batch's T, slice by slice
    std::vector<PlacedLayer> layers;
    StageLayout layout, kept_layout;  // the latter of micro-batches that are kept where others are computed again
  };
  /// Where a layer's tensors of a micro-batch lie.
  struct LayerMemory {
    std::byte* early = nullptr;
    std::byte* late = nullptr;
    std::byte* cheap = nullptr;
  };

  void place_layers();
  void place_slice(Slice& slice);
  static constexpr int kRebuilt = -1;  // any micro-batch that is computed again, if one is
  const StageLayout& layout_of(const Slice& slice, int microbatch) const;
  StageMemory slice_memory(int microbatch) const;
  const Slice& slice_of(const DevicePass& pass) const { return slices_[static_cast<std::size_t>(pass.slice)]; }
  const StageLayout& layout_of(const DevicePass& pass) const { return layout_of(slice_of(pass), pass.microbatch); }
  const DeviceLayer& layer_of(const DevicePass& pass, std::size_t layer) const {
    return *slice_of(pass).layers[layer].layer;
  }
  DeviceTensorShare share_of(std::size_t layer, const Slice& slice) const;
  LayerMemory memory_of(const DevicePass& pass, std::size_t layer) const;
  LayerMemory forward_memory(const DevicePass& pass, std::size_t layer) const;
  template <class MemoryOf>
  void run_group(DeviceKernels& kernels, const DevicePass& pass, const StageLayout::Group& group,
                 const std::byte* input, std::byte* output, MemoryOf memory_of) const;
  void rebuild_group(DeviceKernels& kernels, const DevicePass& pass, const StageLayout::Group& group) const;
  void complete_layer(CallRecorder* buckets, std::size_t layer) const;

  // Layer by layer (device_stage_layers.cpp).
  void place_moved();
  bool has_parameters(std::size_t layer) const;
  void fetch(const DevicePass& pass, std::size_t layer, std::optional<std::size_t> next) const;
  void fetch_forward(const DevicePass& pass, std::size_t layer) const;
  void fetch_backward(const DevicePass& pass, std::size_t layer) const;
  void begin_gather(const DevicePass& pass, std::size_t layer) const;
  void open_layer(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const;
  void leave_vectors(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const;
  void take_vectors(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const;
  void reduce_layer(const DevicePass& pass, std::size_t layer) const;

  void take_output_gradient(DeviceKernels& kernels, const DevicePass& pass) const;
  /// From the last layer to the first: visit(layer, where the gradient of its input goes).
  template <class Visit>
  void go_back(DeviceKernels& kernels, const DevicePass& pass, bool recomputes, Visit visit) const;
  void layer_backward(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer, std::byte* gradient,
                      CallRecorder* buckets) const;
  void find_tied_tables();
  void make_blocks();
  const ParameterBlock& common() const { return blocks_.front(); }
  template <class Count>
  std::int64_t sum_of(Count count) const {
    std::int64_t sum = 0;
    for (const ParameterBlock& block : blocks_) sum += count(block);
    return sum;
  }
  /// Where each block's begin at an aligned byte.
  template <class Count>
  std::int64_t stacked(Count count) const {
    std::int64_t bytes = 0;
    for (const ParameterBlock& block : blocks_) bytes = aligned_bytes(bytes) + count(block);
    return bytes;
  }
  std::int64_t tied_buffer_bytes() const;
  ElementRange own_of(ElementRange range) const;
  /// Of a block, in what a pass has of all of them.
  const std::byte* version_of(std::size_t block, const DevicePass& pass) const;
  float* whole_gradients_of(std::size_t block, const DevicePass& pass) const;
  DeviceLayerCall call_of(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer,
                          const LayerMemory& memory) const;
  std::vector<double> sums_of_losses(DeviceMachine& machine, const float* losses, std::int64_t layers) const;
  std::int64_t sample_bytes() const;
  std::int64_t sample_target_elements() const;
  void allocate_data(DeviceMachine& machine);
  std::int64_t data_bytes() const;

  DeviceStageOptions options_;
  std::vector<Layer> model_layers_;  // as a whole; those in options_ are the rank's share
  std::int64_t element_bytes_;
  std::int64_t tokens_;                 // T
  std::vector<ParameterBlock> blocks_;  // common parameters; behind them routed experts, where there are some
  std::vector<Slice> slices_;
  int largest_slice_ = 0;
  DeviceLayerBytes sequence_bytes_;  // sequences' bytes of all layers
  std::int64_t expert_layers_ = 0;
  std::int64_t moved_weight_bytes_ = 0, moved_gradient_bytes_ = 0;  // layer by layer, of all blocks
  std::array<ElementRange, 2> tied_tables_;                         // [end] of common parameters; count 0: none here
  std::vector<float> constants_;
  std::size_t update_constants_ = 0;  // where the optimizer's begin
  std::int64_t updates_ = 0;
  StepNumbers last_numbers_;

  // On the device.
  float* device_constants_ = nullptr;
  std::int32_t* token_numbers_ = nullptr;   // [microbatches, T]
  std::int32_t* target_numbers_ = nullptr;  // likewise
  std::byte* samples_ = nullptr;            // [microbatches, T, ...], as activations are stored
  float* sample_targets_ = nullptr;         // [microbatches, T, width]
  float* losses_ = nullptr;                 // likewise
  float* balance_losses_ = nullptr;         // [expert layers, microbatches, T]
  StepNumbers* numbers_ = nullptr;          // [steps]
  std::array<float*, 2> whole_tied_ = {};   // [end] gradients of a table of which the block has a share
};

}}  // namespace plumb::executor
