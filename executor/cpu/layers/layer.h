#pragma once
// One layer on the CPU: forward, input gradient and weight gradient of one micro-batch (slice), in the order and with
// the tensors that kernels/layer/layer.h promises. A file a kind (layer_kinds.h); make_cpu_layer is the one way in.
//
// What a layer keeps from its forward to its backward is opaque to the stage, which only lists its tensors, to move or
// to drop them. A layer itself is constant: weights, gradients and what was saved come with the call.

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
#include "kernels/layer/layer.h"

namespace plumb { inline namespace executor {

/// The ranks with which a stage's layers are divided; null: there are no others.
struct LayerGroups {
  Communicator* tensor = nullptr;
  Communicator* context = nullptr;
  Communicator* expert = nullptr;  ///< the ranks that have some of the routed experts each
};

/// Where a rank sits in these groups.
struct LayerSeat {
  int slices = 1;  ///< that it cuts each sequence into
  TensorSeat tensor;
  ContextSeat context;
  ExpertSeat experts;
  int kv_sharers = 1;  ///< tensor ranks that have the layer's kv heads (executor/division/tensor_division.h)
};

/// What the layers of a stage share.
struct CpuContext {
  CpuKernelSet kernels;
  TensorPool* pool = nullptr;
  LayerWork work;                       ///< of a slice, or of a context rank: its sequences have the tokens there
  float* scratch = nullptr;             ///< [largest scratch_elements of the stage]
  std::int64_t first_token = 0;         ///< where in its sequence a slice begins
  std::int64_t whole_sequence = 0;      ///< tokens of the sequences that are sliced or shared; 0: they are not
  int slices = 1;                       ///< of each sequence
  int slice = 0;                        ///< which of them this is
  std::span<const std::uint8_t> text;   ///< what is trained on: tokens,
  const SampleData* samples = nullptr;  ///< or samples of real numbers
  LayerGroups groups;
};

/// What the slices of a micro-batch share in one layer: from the first F to the last I. S tokens of a sequence are kept
/// here: all s of them, or in a ring of context ranks its own.
struct SequenceSaved {
  Tensor picks;        // [b*s, k] of a mixture of experts, those of the slices done so far
  Tensor keys_values;  // [b*S, 2k*d]
  Tensor gradients;    // [b*S, 2k*d], what the slices done so far owe to them; from the first I on
};

/// What a layer keeps of a micro-batch (slice).
class LayerSaved {
 public:
  virtual ~LayerSaved() = default;

  /// All of its tensors, in one order; some may be empty.
  virtual std::vector<Tensor*> tensors() = 0;

  /// Of these the layer's input, from which its forward can be run again; null for a layer that makes its own.
  virtual Tensor* kept_input() = 0;

  /// Of these the ones that CpuLayer::rebuild_cheap makes again; none by default.
  virtual std::vector<Tensor*> cheap() { return {}; }

  /// Of these the ones that wait in 16 bits where activations do (half_tensors.h): numbers of the computing precision;
  /// none by default.
  virtual std::vector<Tensor*> narrowable() { return {}; }

  bool is_narrow = false;   ///< they are in 16 bits
  double loss = 0;          ///< summed over the micro-batch (slice) by a layer that ends the model
  double balance_loss = 0;  ///< of a mixture of experts, likewise, added to by the input gradient
};

/// Empties all tensors.
void drop_tensors(LayerSaved& saved);

/// One micro-batch (slice) at one layer.
struct LayerCall {
  const CpuContext& context;
  BatchPlace place;                       ///< which samples these are
  const float* weights = nullptr;         ///< the layer's common parameters, of the micro-batch's version
  float* gradients = nullptr;             ///< likewise, added to
  const float* expert_weights = nullptr;  ///< its routed experts' parameters on this rank; null where it has none
  float* expert_gradients = nullptr;
  float gradient_scale = 1;           ///< 1 / tokens of the batch; for a layer that ends the model
  int layer_number = 0;               ///< in the model
  bool keep_input = false;            ///< leave the input in kept_input() also where the backward does not read it
  SequenceSaved* sequence = nullptr;  ///< there where sequences are sliced
};

/// Some of a layer's parameters in its block of weights.
struct ElementRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

class CpuLayer {
 public:
  virtual ~CpuLayer() = default;

  virtual std::unique_ptr<LayerSaved> make_saved() const = 0;

  /// input: [input_elements], empty for a layer that makes its own. Returns [output_elements], empty for one that ends
  /// the model.
  virtual Tensor forward(const LayerCall& call, Tensor input, LayerSaved& saved) const = 0;

  /// output_gradient: [output_elements]. Returns the input's gradient [input_elements]. The gradients of norms are
  /// added to the layer's.
  virtual Tensor input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& saved) const = 0;

  /// After input_grad. What was saved is not needed any more.
  virtual void weight_grad(const LayerCall& call, LayerSaved& saved) const = 0;

  /// Makes what LayerSaved::cheap() lists again from the other saved tensors: outputs of norms and activations
  /// (selective recomputation).
  virtual void rebuild_cheap(const LayerCall& call, LayerSaved& saved) const;

  /// Elements of context.scratch that the kernels need for these sequences.
  virtual std::int64_t scratch_elements(const LayerWork& work) const;

  /// The layer's copy of the token table that both ends of a tied model use; count 0 if it has none there.
  virtual ElementRange tied_table(ModelEnd end) const;
};

/// The share of a rank in `layer`; its parameters are those of divide_layer(). `sequence`: tokens of a whole sequence.
/// Asserts has_kernels().
std::unique_ptr<CpuLayer> make_cpu_layer(const Layer& layer, std::int64_t sequence, const LayerSeat& seat = {});

/// Element offset of the parameter of that name among the layer's parameters of the same part, of whose experts a rank
/// has one in `expert_ranks`; -1 if there is none.
std::int64_t parameter_offset(const Layer& layer, const std::string& name, int expert_ranks = 1);

/// The address of a parameter at its offset; null if the layer has none of it (-1).
template <class T>
T* at_offset(T* block, std::int64_t offset) {
  return offset < 0 ? nullptr : block + offset;
}

/// Which of a layer's dropouts over rows of `columns` channels this is, counted from 0.
struct DropoutSite {
  DropoutKey key;
  DropoutRows rows;
};
DropoutSite dropout_site(const LayerCall& call, std::uint64_t number, std::int64_t columns);

/// Tokens of a sequence that this rank has of the slices before.
inline std::int64_t own_tokens_before(const CpuContext& context) {
  return context.first_token / (context.groups.context == nullptr ? 1 : context.groups.context->members());
}

/// T = b*s.
inline std::int64_t tokens_of(const LayerWork& work) {
  return work.microbatch * work.sequence;
}

}}  // namespace plumb::executor
