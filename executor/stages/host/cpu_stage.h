#pragma once
// A stage of real layers on the CPU that computes in fp32. In 16 bits, the tensors that its layers keep, hand on and
// send are stored in 16 bits (half_tensors.h), and a message is words of two numbers.

#include <functional>
#include <memory>
#include <vector>

#include "executor/layers/host/layer.h"
#include "executor/parameters/parameters.h"
#include "executor/spec/data/token_batch.h"
#include "executor/spec/run_spec.h"
#include "executor/stages/stage.h"

namespace plumb { inline namespace executor {

struct CpuStageOptions {
  std::vector<Layer> layers;       ///< whole layers, undivided
  LayerGroups groups;              ///< process groups that divide the layers; must outlive the stage
  int expert_tensor = 1;           ///< tensor ranks that share each routed expert
  bool sequence_parallel = false;  ///< LayerWork::sequence_parallel
  ContextAttention context_attention = ContextAttention::kRing;
  int first_layer = 0;             ///< number of its first layer in the model
  std::int64_t microbatch = 1;     ///< sequences of a micro-batch that this rank works on
  std::int64_t sample_stride = 0;  ///< samples from one micro-batch's first to the next one's; 0: `microbatch`
  std::int64_t sequence = 1;       ///< tokens of a sequence
  int slices = 1;                  ///< slices of each sequence
  Recompute rebuild = Recompute::kNone;
  int rebuild_layers = 1;      ///< layers of a group for Recompute::kFull
  std::vector<bool> rebuilds;  ///< [micro-batch] true if its activations are computed again; empty: all
  OptimizerSettings optimizer;
  std::optional<HalfFormat> half;  ///< format in which weights and activations are stored; none: fp32
  int zero = 0;                    ///< ZeRO stage (executor/parameters/parameters.h)
  ShardBy shard_by = ShardBy::kElement;
  /// The copies, if ZeRO 2 and 3 go layer by layer, or null; must outlive the stage.
  Communicator* layerwise = nullptr;
  Communicator* expert_layerwise = nullptr;  ///< the copies of its routed experts in that case; must outlive the stage
  int copies = 1;                            ///< copies of the stage that shard its state
  int copy = 0;                              ///< number of this copy
  int expert_copies = 1;                     ///< copies of its routed experts on this rank that shard their state
  int expert_copy = 0;                       ///< number of this copy among them
  std::vector<int> bucket_layers;            ///< [bucket] layers of a bucket, from the last layer on; empty: one bucket
  TensorPool* state_pool = nullptr;          ///< memory of the optimizer's state; null: the stage's pool
  std::uint64_t seed = 1;
  std::span<const std::uint8_t> text;   ///< must outlive the stage
  const SampleData* samples = nullptr;  ///< must outlive the stage; may be null for models that read text
  std::int64_t first_sample = 0;     ///< first sample of micro-batch 0 on this rank, by its number in the global batch
  std::vector<int> weight_versions;  ///< [micro-batch] version by weight_versions(); -1: the stage does not run it
  std::vector<float> gradient_scales;             ///< [micro-batch] 1 / tokens of its batch
  std::function<void()> before_update;            ///< called when the gradients are complete; may be empty
  std::vector<KernelCall>* kernel_log = nullptr;  ///< log of every kernel call, or null; must outlive the stage
};

class CpuStage : public Stage {
 public:
  /// `pool` must outlive the stage.
  CpuStage(CpuStageOptions options, TensorPool& pool);

  void begin(std::int64_t step) override;
  Tensor forward(MicrobatchSlice of, Tensor input) override;
  void recompute(MicrobatchSlice of) override;
  Tensor backward(MicrobatchSlice of, Tensor output_gradient) override;
  Tensor input_grad(MicrobatchSlice of, Tensor output_gradient) override;
  void weight_grad(MicrobatchSlice of) override;
  std::vector<Tensor> take_activations(MicrobatchSlice of) override;
  void put_activations(MicrobatchSlice of, std::vector<Tensor> activations) override;
  void watch_buckets(BucketHook complete) override { bucket_hook_ = std::move(complete); }
  GradientMeasure gradient_measure() const override;
  void optimizer_step(const StepScale& scale = {}) override;
  std::vector<Collective> start_reduction(int bucket) override;
  std::vector<Collective> start_expert_reduction(int bucket) override;
  void finish_reduction() override;
  std::vector<Collective> start_sum_of_shares() override;
  std::vector<Collective> start_gather() override { return parameters_.start_gather(); }
  std::vector<Collective> start_expert_gather() override;
  void drop_gathered() override;
  std::vector<Collective> start_tied(ModelEnd end) override {
    return parameters_.start_range(static_cast<std::size_t>(end), tied_table(end));
  }
  std::span<float> tied_gradients(ModelEnd end) override {
    return parameters_.range_gradients(static_cast<std::size_t>(end));
  }
  void finish_tied(ModelEnd end) override { parameters_.finish_range(static_cast<std::size_t>(end)); }
  std::int64_t input_elements(int slice) const override;
  std::int64_t output_elements(int slice) const override;

  /// Sets the factor of the losses in the next backward.
  void set_loss_scale(float scale) { loss_scale_ = scale; }

  /// Returns the summed loss of a micro-batch's tokens in the last forward; 0 on a stage without the head.
  double loss(int microbatch) const;

  /// Returns the load-balancing loss of its mixtures of experts, summed over a micro-batch's tokens in the last
  /// backward.
  double balance_loss(int microbatch) const;

  /// parameters() are all parameters but those of routed experts; experts() are the routed experts', or null without
  /// any.
  const CpuParameters& parameters() const { return parameters_; }
  CpuParameters& parameters() { return parameters_; }
  CpuParameters* experts() { return experts_.get(); }

  /// Returns the bytes of both that are held between steps.
  ParameterBytes held_bytes() const;

 private:
  /// Kept tensors of a micro-batch (slice).
  struct State {
    std::vector<std::unique_ptr<LayerSaved>> saved;  // [layer]
    std::vector<Tensor> inputs;  // [group of layers] the only tensors that F keeps with recomputation
    bool is_rebuilt = false;     // true after R
  };

  std::size_t index_of(MicrobatchSlice of) const {
    return static_cast<std::size_t>(of.microbatch) * contexts_.size() + static_cast<std::size_t>(of.slice);
  }
  State& at(MicrobatchSlice of) { return states_[index_of(of)]; }
  const CpuContext& context_of(MicrobatchSlice of) const { return contexts_[static_cast<std::size_t>(of.slice)]; }
  SequenceSaved* sequence_of(std::size_t layer, MicrobatchSlice of);
  std::vector<Tensor*> activations_of(MicrobatchSlice of);
  int version_of(MicrobatchSlice of) const { return options_.weight_versions[static_cast<std::size_t>(of.microbatch)]; }
  BatchPlace place_of(MicrobatchSlice of) const;
  std::int64_t whole_input_elements(int slice) const;
  std::int64_t whole_output_elements(int slice) const;
  Tensor opened(Tensor message, std::int64_t elements) const;
  Tensor sealed(Tensor tensor) const;
  Tensor rounded(Tensor tensor) const;
  std::int64_t message_words(std::int64_t elements) const;
  void narrow_kept(LayerSaved& saved) const;
  void widen_kept(LayerSaved& saved) const;
  Tensor run_forward(MicrobatchSlice of, Tensor input, std::size_t group, bool keep);
  std::size_t group_end(std::size_t group) const;
  bool rebuilds(MicrobatchSlice of) const;
  void rebuild_group(MicrobatchSlice of, std::size_t group);
  void rebuild_before(std::size_t layer, MicrobatchSlice of);
  /// Weights of one layer.
  struct StageWeights {
    WidenedWeights common, experts;
  };
  StageWeights weights_of(std::size_t layer, MicrobatchSlice of, std::optional<std::size_t> next = {});
  StageWeights backward_weights(std::size_t layer, MicrobatchSlice of);
  LayerCall call_of(std::size_t layer, MicrobatchSlice of, const StageWeights& weights);
  LayerCall backward_call_of(std::size_t layer, MicrobatchSlice of, const StageWeights& weights);
  Tensor layer_input_grad(std::size_t layer, MicrobatchSlice of, const StageWeights& weights, Tensor output_gradient);
  void layer_weight_grad(std::size_t layer, MicrobatchSlice of, const StageWeights& weights);
  void finish(MicrobatchSlice of);
  void complete_layer(std::size_t layer);
  ElementRange tied_table(ModelEnd end) const;

  const CpuStageOptions options_;
  // First layer of each group that is computed again together; without: one group.
  const std::vector<std::size_t> group_starts_;
  TensorPool& pool_;
  std::vector<std::unique_ptr<CpuLayer>> layers_;
  std::vector<float> scratch_;
  std::vector<CpuContext> contexts_;  // [slice]
  CpuParameters parameters_;
  std::unique_ptr<CpuParameters> experts_;  // null without routed experts
  BucketHook bucket_hook_;
  float loss_scale_ = 1;
  std::int64_t step_ = 0;
  std::vector<State> states_;                          // [micro-batch, slice]
  std::vector<std::vector<SequenceSaved>> sequences_;  // [micro-batch][layer]; empty where sequences are not sliced
};

}}  // namespace plumb::executor
