#pragma once
// What the replay loop knows of a stage: it turns inputs into outputs and gradients, and updates its weights. It knows
// nothing of ranks, messages and time.
//
// A stage keeps what its backward needs by micro-batch (slice), and the weight versions that micro-batches under way
// still need. An empty Tensor stands for "none": the first stage's input and its gradient, the last stage's output and
// its gradient.

#include <cstdint>
#include <span>
#include <vector>

#include "executor/sequence_slice.h"
#include "executor/tensor_pool.h"

namespace plumb {

/// Where a tied table is used: as the embedding, or as the head's projection.
enum class ModelEnd : std::uint8_t { kEmbedding, kHead };

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

  /// OPTIMIZER_STEP: makes the next version of the weights from the gradients summed up so far, and zeroes these.
  virtual void optimizer_step() = 0;

  /// All weight gradients, for REDUCE_GRAD.
  virtual std::span<float> gradients() = 0;

  /// Of these, the gradients of one end's copy of the token table that both ends share; empty if the stage has it not.
  virtual std::span<float> tied_gradients(ModelEnd end) = 0;

  /// Elements of the messages that reach the stage for a slice: its input, and the gradient of its output.
  virtual std::int64_t input_elements(int slice) const = 0;
  virtual std::int64_t output_elements(int slice) const = 0;
};

}  // namespace plumb
