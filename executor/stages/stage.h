#pragma once
// The replay loop's view of a stage: it turns inputs into outputs and gradients, and updates its weights. It knows
// nothing of ranks, messages and time.
//
// For each micro-batch (slice) a stage keeps the tensors that its backward needs, and it keeps the weight versions that
// micro-batches under way still need. An empty Tensor stands for "none": the first stage's input and its gradient, and
// the last stage's output and its gradient.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "executor/layers/model_end.h"
#include "executor/parameters/step_scale.h"
#include "executor/spec/division/sequence_slice.h"
#include "executor/transport/collective.h"
#include "executor/transport/tensor_pool.h"

namespace plumb { inline namespace executor {

/// Called when all gradients of a bucket are complete.
using BucketHook = std::function<void(int bucket)>;

class Stage {
 public:
  virtual ~Stage() = default;

  /// Starts the replay of a schedule: step 0, 1, ... of the run. Micro-batches are numbered from 0 again.
  virtual void begin(std::int64_t step) = 0;

  /// F; slices of a micro-batch come in ascending order. Returns the stage's output.
  virtual Tensor forward(MicrobatchSlice of, Tensor input) = 0;

  /// R: computes again the activations that F did not keep. If it is not called, the backward does so first.
  virtual void recompute(MicrobatchSlice of) = 0;

  /// B: I and W in one, which releases memory layer by layer; slices come in descending order. Returns the gradient of
  /// the stage's input.
  virtual Tensor backward(MicrobatchSlice of, Tensor output_gradient) = 0;

  /// I; slices come in descending order. Returns the gradient of the stage's input.
  virtual Tensor input_grad(MicrobatchSlice of, Tensor output_gradient) = 0;

  /// W; comes after I.
  virtual void weight_grad(MicrobatchSlice of) = 0;

  /// take_activations hands out all tensors that F has kept for the backward of this micro-batch (slice) alone, for
  /// OFFLOAD and EVICT. put_activations takes them back, or copies of them, in the same order, for RELOAD and LOAD.
  /// Keys and values that other slices read stay where they are.
  virtual std::vector<Tensor> take_activations(MicrobatchSlice of) = 0;
  virtual void put_activations(MicrobatchSlice of, std::vector<Tensor> activations) = 0;

  /// Announces that the next B or W is the last one before the gradients are reduced. That B or W calls `complete` for
  /// each bucket in turn, as soon as no further layer adds to it.
  virtual void watch_buckets(BucketHook complete) = 0;

  /// Returns the measure of the gradients that this stage counts among its copies, as they are when reduced.
  virtual GradientMeasure gradient_measure() const = 0;

  /// OPTIMIZER_STEP: makes the next version of the weights from the scaled gradients and zeroes the gradients.
  virtual void optimizer_step(const StepScale& scale) = 0;

  // The collectives of a stage's copies, where there are several. Each start_ function returns collectives of the
  // copies' group, in order. Their memory stays where it is until they have ended and the stage is told so by the
  // finish_ or drop_ function. Routed experts have a group of their own: the copies that have the same experts.

  /// REDUCE_GRAD of a bucket: start_reduction of all parameters but routed experts, start_expert_reduction of these.
  virtual std::vector<Collective> start_reduction(int bucket) = 0;
  virtual std::vector<Collective> start_expert_reduction(int) { return {}; }
  virtual void finish_reduction() = 0;

  /// Sums the own share of all reduced gradients over the copies with the same share, where several groups of copies
  /// share state.
  virtual std::vector<Collective> start_sum_of_shares() { return {}; }

  /// UNSHARD gathers the whole weights, and RESHARD drops them.
  virtual std::vector<Collective> start_gather() = 0;
  virtual std::vector<Collective> start_expert_gather() { return {}; }
  virtual void drop_gathered() = 0;

  /// Gathers the gradients of one end's copy of a tied table, after their reduction.
  virtual std::vector<Collective> start_tied(ModelEnd end) = 0;

  /// tied_gradients returns these gradients, or nothing if the stage does not have that end. finish_tied takes back the
  /// values that were written into them.
  virtual std::span<float> tied_gradients(ModelEnd end) = 0;
  virtual void finish_tied(ModelEnd end) = 0;

  /// Return the elements, of 4 bytes, of the messages that reach the stage for a slice: its input, and the gradient of
  /// its output.
  virtual std::int64_t input_elements(int slice) const = 0;
  virtual std::int64_t output_elements(int slice) const = 0;
};

}}  // namespace plumb::executor
