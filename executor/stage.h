#pragma once
// What the replay loop knows of a stage: it turns inputs into outputs and gradients, and updates its weights. It knows
// nothing of ranks, messages and time.
//
// A stage keeps what its backward needs by micro-batch (slice), and the weight versions that micro-batches under way
// still need. An empty Tensor stands for "none": the first stage's input and its gradient, the last stage's output and
// its gradient.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "executor/division/sequence_slice.h"
#include "executor/tensor_pool.h"
#include "executor/training/step_scale.h"
#include "executor/transport/collective.h"

namespace plumb { inline namespace executor {

/// Where a tied table is used: as the embedding, or as the head's projection.
enum class ModelEnd : std::uint8_t { kEmbedding, kHead };

/// Called when all gradients of a bucket are complete.
using BucketHook = std::function<void(int bucket)>;

class Stage {
 public:
  virtual ~Stage() = default;

  /// Starts the replay of a schedule: step 0, 1, ... of the run. Micro-batches are numbered anew.
  virtual void begin(std::int64_t step) = 0;

  /// F, slices of a micro-batch in ascending order. Returns the stage's output.
  virtual Tensor forward(MicrobatchSlice of, Tensor input) = 0;

  /// R: rebuilds what F did not keep. Without it, the backward does that first.
  virtual void recompute(MicrobatchSlice of) = 0;

  /// B: I and W in one, releasing memory on the way; slices in descending order. Returns the gradient of the stage's
  /// input.
  virtual Tensor backward(MicrobatchSlice of, Tensor output_gradient) = 0;

  /// I, slices in descending order. Returns the gradient of the stage's input.
  virtual Tensor input_grad(MicrobatchSlice of, Tensor output_gradient) = 0;

  /// W, after I.
  virtual void weight_grad(MicrobatchSlice of) = 0;

  /// Hands out all that F has kept for the backward of this micro-batch (slice) alone, for OFFLOAD and EVICT; takes it
  /// back, or copies of it, in the same order, for RELOAD and LOAD. Keys and values that other slices read stay.
  virtual std::vector<Tensor> take_activations(MicrobatchSlice of) = 0;
  virtual void put_activations(MicrobatchSlice of, std::vector<Tensor> activations) = 0;

  /// The next B or W is the last one before the gradients are reduced: it calls `complete` for each bucket in turn, as
  /// soon as no layer behind adds to it.
  virtual void watch_buckets(BucketHook complete) = 0;

  /// Of the gradients that this stage speaks for among its copies, as they are when reduced.
  virtual GradientMeasure gradient_measure() const = 0;

  /// OPTIMIZER_STEP: makes the next version of the weights from the scaled gradients, and zeroes these.
  virtual void optimizer_step(const StepScale& scale) = 0;

  // What the copies of a stage do together, where there are several: collectives of their group, in order. Their memory
  // stays where it is until they have ended and the stage is told so. Routed experts have a group of their own, of the
  // copies that have the same experts.

  /// REDUCE_GRAD of a bucket.
  virtual std::vector<Collective> start_reduction(int bucket) = 0;
  virtual std::vector<Collective> start_expert_reduction(int) { return {}; }
  virtual void finish_reduction() = 0;

  /// UNSHARD and RESHARD: the whole weights come, and go.
  virtual std::vector<Collective> start_gather() = 0;
  virtual std::vector<Collective> start_expert_gather() { return {}; }
  virtual void drop_gathered() = 0;

  /// Makes the gradients of one end's copy of a shared token table whole, after their reduction.
  virtual std::vector<Collective> start_tied(ModelEnd end) = 0;

  /// These gradients; empty if the stage has it not. finish_tied() takes back what was written into them.
  virtual std::span<float> tied_gradients(ModelEnd end) = 0;
  virtual void finish_tied(ModelEnd end) = 0;

  /// Elements, of 4 bytes, of the messages that reach the stage for a slice: its input, and the gradient of its output.
  virtual std::int64_t input_elements(int slice) const = 0;
  virtual std::int64_t output_elements(int slice) const = 0;
};

}}  // namespace plumb::executor
