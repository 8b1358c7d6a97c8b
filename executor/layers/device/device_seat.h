#pragma once
// The part of a layer, and of its sequences, that a rank has.

#include <cstdint>

#include "executor/spec/division/context_division.h"
#include "executor/spec/division/tensor_division.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

struct DeviceSeat {
  TensorSeat tensor;          ///< seat in the tensor group
  ContextSeat context;        ///< seat in the context group, whose ranks have some tokens of each sequence
  ExpertSeat experts;         ///< seat in the expert group, whose ranks have some experts each
  std::int64_t sequence = 0;  ///< s: tokens of the context group's sequences; 0: those of the work
  TokenRange slice;           ///< tokens of this slice; all tokens where sequences are whole
  int slices = 1;             ///< slices of each sequence
  int slice_number = 0;       ///< number of this slice

  bool is_sliced() const { return slice.count < sequence; }
  /// Returns the tokens of a whole sequence; `work` has those on this rank.
  std::int64_t whole_sequence(const LayerWork& work) const {
    return is_sliced() ? sequence : work.sequence * context.ranks;
  }
};

/// Returns the work of the seat's groups together, as the layer's program divides it. `own` has this rank's tokens.
inline LayerWork whole_work(const LayerWork& own, const DeviceSeat& seat) {
  return {.microbatch = own.microbatch,
          .sequence = own.sequence * seat.context.ranks,
          .whole_sequence = seat.sequence,
          .earlier_tokens = seat.slice.first,
          .tensor_parallel = seat.tensor.ranks,
          .sequence_parallel = own.sequence_parallel,
          .context_parallel = seat.context.ranks,
          .exchanges_heads = seat.context.attention == ContextAttention::kUlysses,
          .experts = {.parallel = seat.experts.ranks, .tensor = seat.experts.tensor.ranks}};
}

}}  // namespace plumb::executor
