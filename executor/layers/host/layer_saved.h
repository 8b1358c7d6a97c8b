#pragma once
// The tensors that a layer holds of a micro-batch (slice), and those that its slices share.

#include <cstddef>
#include <vector>

#include "executor/layers/host/host_program.h"
#include "executor/transport/tensor_pool.h"

namespace plumb { inline namespace executor {

/// Tensors that the slices of a micro-batch share in one layer, from the first F to the last I. This rank keeps S
/// tokens of a sequence: all s of them, or in a ring of context ranks its own.
struct SequenceSaved {
  Tensor picks;        // [b*s, k] picks of a mixture of experts, for the slices done so far
  Tensor keys_values;  // [b*S, 2k*d]
  Tensor gradients;    // [b*S, 2k*d] sums over the slices done so far, from the first I on
  // Mamba-2's mixer has these (kernels/cpu/state_spaces/); the first slice finds none.
  std::vector<Tensor> states;  // [slice] [b, H, P, N] states before the slice
  std::vector<Tensor> rows;    // [slice] [b, w-1, C] rows before the slice, for the convolution
  Tensor of_states, of_rows;   // gradients of what the last slice done has found, from the first I on

  // Let go of what attention or a state mixer has, in its backward of the first slice, which comes last.
  void release_attention() {
    keys_values = Tensor();
    gradients = Tensor();
  }
  void release_states() {
    states.clear();
    rows.clear();
    of_states = Tensor();
    of_rows = Tensor();
  }
};

class LayerSaved {
 public:
  /// `program` must outlive the object.
  explicit LayerSaved(const HostProgram& program) : held(program.storages()), program_(&program) {}

  const HostProgram& program() const { return *program_; }
  Tensor& at(int tensor) { return held[program_->storage_of(tensor)]; }

  /// Returns all tensors that it can hold between passes, always in the same order; some may be empty.
  std::vector<Tensor*> tensors();

  /// Returns the layer's input, from which its forward can be run again; null for a layer that makes its own input.
  Tensor* kept_input();

  /// Returns the tensors that CpuLayer::rebuild_cheap makes again.
  std::vector<Tensor*> cheap() { return of(program_->cheap()); }

  /// Returns the tensors of numbers that are stored in 16 bits where activations are (executor/layers/host/half_tensors.h).
  std::vector<Tensor*> narrowable() { return of(program_->numbers()); }

  std::vector<Tensor> held;  ///< [storage] what the storage holds; empty where nothing needs it
  Tensor input;             ///< copy of an input that the forward has replaced, where LayerCall::keep_input asks for it
  bool is_narrow = false;   ///< true while tensors of numbers are in 16 bits
  double loss = 0;          ///< summed over the micro-batch (slice) by a layer that ends the model
  double balance_loss = 0;  ///< loss of a mixture of experts, summed in the same way; the input gradient adds to it

 private:
  std::vector<Tensor*> of(const std::vector<std::size_t>& storages);

  const HostProgram* program_;
};

/// Empties all tensors.
void drop_tensors(LayerSaved& saved);

}}  // namespace plumb::executor
