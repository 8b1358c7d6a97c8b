#pragma once
// One micro-batch (slice) at one layer of the CPU: the data and memory that the layers of a stage share, the layer's
// weights and gradients, and its groups.

#include <cstdint>
#include <span>
#include <vector>

#include "executor/kernels/kernel_set.h"
#include "executor/layers/host/layer_saved.h"
#include "executor/spec/data/sample_data.h"
#include "executor/spec/data/token_batch.h"
#include "executor/spec/division/context_division.h"
#include "executor/spec/division/equal_blocks.h"
#include "executor/spec/division/tensor_division.h"
#include "executor/transport/communicator.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

/// The process groups that divide a stage's layers; null: there is no other rank.
struct LayerGroups {
  Communicator* tensor = nullptr;
  Communicator* context = nullptr;
  Communicator* expert = nullptr;  ///< the ranks that have some of the routed experts each
};

/// The rank's number and the number of ranks in each of these groups.
struct LayerSeat {
  TensorSeat tensor;
  ContextSeat context;
  ExpertSeat experts;

  /// Returns which of `tokens` tokens the rank brings to routed experts. Tensor ranks that share their experts bring the
  /// same tokens, and the others divide the tokens among them.
  TokenRange routed_tokens(std::int64_t tokens) const {
    const int blocks = tensor.ranks / experts.tensor.ranks, block = tensor.rank / experts.tensor.ranks;
    const std::int64_t first = block_begin(tokens, blocks, block);
    return {.first = first, .count = block_begin(tokens, blocks, block + 1) - first};
  }
};

/// Data and memory that the layers of a stage share.
struct CpuContext {
  CpuKernelSet kernels;
  TensorPool* pool = nullptr;
  LayerWork work;                       ///< tokens of a slice, or of a context rank's part of it
  float* scratch = nullptr;             ///< [largest scratch_elements of the stage]
  std::int64_t first_token = 0;         ///< first token of the slice in its sequence
  std::int64_t whole_sequence = 0;      ///< tokens of a whole sequence, if sequences are sliced or shared; otherwise 0
  int slices = 1;                       ///< slices of each sequence
  int slice = 0;                        ///< number of this slice
  std::span<const std::uint8_t> text;   ///< training data of a model that reads text
  const SampleData* samples = nullptr;  ///< training data of a model that reads samples
  LayerGroups groups;
  LayerSeat seat;

  /// True if tensor ranks have a block of the rows between products.
  bool divides_rows() const { return seat.tensor.ranks > 1 && work.sequence_parallel; }
  /// Returns the tokens of a sequence that this rank has in the slices before.
  std::int64_t own_tokens_before() const { return first_token / seat.context.ranks; }
};

/// The arguments of one micro-batch (slice) at one layer.
struct LayerCall {
  const CpuContext& context;
  BatchPlace place;                       ///< samples of this micro-batch
  const float* weights = nullptr;         ///< the layer's common parameters in the micro-batch's version
  float* gradients = nullptr;             ///< gradients of these, which the layer adds to
  const float* expert_weights = nullptr;  ///< parameters of its routed experts on this rank; null where it has none
  float* expert_gradients = nullptr;
  float gradient_scale = 1;           ///< 1 / tokens of the batch; for a layer that ends the model
  int layer_number = 0;               ///< the layer's number in the model
  bool keep_input = false;            ///< leave the input in kept_input() even where the backward does not read it
  SequenceSaved* sequence = nullptr;  ///< null where sequences are not sliced

  /// Returns the key of the layer's dropout of that number.
  DropoutKey dropout_key(std::uint64_t number) const {
    return {.seed = place.seed,
            .step = static_cast<std::uint64_t>(place.step),
            .layer = static_cast<std::uint64_t>(layer_number),
            .place = number};
  }
};

}}  // namespace plumb::executor
