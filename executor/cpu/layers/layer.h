#pragma once
// One layer on the CPU: forward, input gradient and weight gradient of one micro-batch (slice), in the order and with
// the tensors that kernels/layer.h promises. Each kind has a file (layer_kinds.h), and make_cpu_layer makes any
// of them.
//
// The tensors that a layer keeps from its forward to its backward are opaque to the stage, which only lists them, to
// move or to drop them. A layer itself is constant: weights, gradients and saved tensors come with the call.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/cpu/kernels/kernel_set.h"
#include "executor/data/sample_data.h"
#include "executor/data/token_batch.h"
#include "executor/division/context_division.h"
#include "executor/division/tensor_division.h"
#include "executor/stage.h"
#include "executor/tensor_pool.h"
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
  int slices = 1;  ///< slices into which the rank cuts each sequence
  TensorSeat tensor;
  ContextSeat context;
  ExpertSeat experts;
  int kv_sharers = 1;  ///< tensor ranks that have the layer's kv heads (executor/division/tensor_division.h)
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
};

/// Tensors that the slices of a micro-batch share in one layer, from the first F to the last I. This rank keeps S
/// tokens of a sequence: all s of them, or in a ring of context ranks its own.
struct SequenceSaved {
  Tensor picks;        // [b*s, k] picks of a mixture of experts, for the slices done so far
  Tensor keys_values;  // [b*S, 2k*d]
  Tensor gradients;    // [b*S, 2k*d] sums over the slices done so far, from the first I on
};

/// The tensors that a layer keeps of a micro-batch (slice).
class LayerSaved {
 public:
  virtual ~LayerSaved() = default;

  /// Returns all of its tensors, always in the same order; some may be empty.
  virtual std::vector<Tensor*> tensors() = 0;

  /// Returns the layer's input, from which its forward can be run again; null for a layer that makes its own input.
  virtual Tensor* kept_input() = 0;

  /// Returns the tensors that CpuLayer::rebuild_cheap makes again; none by default.
  virtual std::vector<Tensor*> cheap() { return {}; }

  /// Returns the tensors of numbers that are stored in 16 bits where activations are (executor/cpu/half_tensors.h);
  /// none by default.
  virtual std::vector<Tensor*> narrowable() { return {}; }

  bool is_narrow = false;   ///< true while these tensors are in 16 bits
  double loss = 0;          ///< summed over the micro-batch (slice) by a layer that ends the model
  double balance_loss = 0;  ///< loss of a mixture of experts, summed in the same way; the input gradient adds to it
};

/// Empties all tensors.
void drop_tensors(LayerSaved& saved);

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
};

/// A range of a layer's parameters in its block of weights.
struct ElementRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

class CpuLayer {
 public:
  virtual ~CpuLayer() = default;

  virtual std::unique_ptr<LayerSaved> make_saved() const = 0;

  /// input: [input_elements], empty for a layer that makes its own. Returns [output_elements], or an empty tensor for a
  /// layer that ends the model.
  virtual Tensor forward(const LayerCall& call, Tensor input, LayerSaved& saved) const = 0;

  /// output_gradient: [output_elements]. Returns the input's gradient [input_elements]. Adds the gradients of norms to
  /// the layer's gradients.
  virtual Tensor input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& saved) const = 0;

  /// Comes after input_grad. The saved tensors are not needed any more afterwards.
  virtual void weight_grad(const LayerCall& call, LayerSaved& saved) const = 0;

  /// Computes the tensors that LayerSaved::cheap() lists again from the other saved tensors: outputs of norms and
  /// activation functions (selective recomputation).
  virtual void rebuild_cheap(const LayerCall& call, LayerSaved& saved) const;

  /// Returns the elements of context.scratch that the kernels need for these sequences.
  virtual std::int64_t scratch_elements(const LayerWork& work) const;

  /// Returns the layer's copy of the token table that both ends of a tied model use; count 0 if it has none for that
  /// end.
  virtual ElementRange tied_table(ModelEnd end) const;
};

/// Returns a rank's share of `layer`, whose parameters are those of divide_layer(). `sequence`: tokens of a whole
/// sequence. Asserts has_kernels().
std::unique_ptr<CpuLayer> make_cpu_layer(const Layer& layer, std::int64_t sequence, const LayerSeat& seat = {});

/// Returns the element offset of the parameter of that name among the layer's parameters of the same part; -1 if there
/// is none. Of routed experts a rank has one share in `expert_ranks`.
std::int64_t parameter_offset(const Layer& layer, const std::string& name, int expert_ranks = 1);

/// Returns the address of a parameter at its offset; null if the layer does not have it (-1).
template <class T>
T* at_offset(T* block, std::int64_t offset) {
  return offset < 0 ? nullptr : block + offset;
}

/// The key and the rows of a layer's dropout; dropout_site() takes its number in the layer, from 0, and the rows'
/// channels.
struct DropoutSite {
  DropoutKey key;
  DropoutRows rows;
};
DropoutSite dropout_site(const LayerCall& call, std::uint64_t number, std::int64_t columns);

/// Returns the tokens of a sequence that this rank has in the slices before.
inline std::int64_t own_tokens_before(const CpuContext& context) {
  return context.first_token / (context.groups.context == nullptr ? 1 : context.groups.context->members());
}

/// Returns T = b*s.
inline std::int64_t tokens_of(const LayerWork& work) {
  return work.microbatch * work.sequence;
}

}}  // namespace plumb::executor
