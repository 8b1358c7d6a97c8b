#pragma once
// The division of a layer, and the part of the data that one rank has.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// The division of a layer's routed experts: whole experts over ranks, and each expert as tensor parallelism divides an
/// MLP.
struct ExpertDivision {
  int parallel = 1;
  int tensor = 1;

  friend bool operator==(const ExpertDivision&, const ExpertDivision&) = default;
};

/// One micro-batch, and the degree to which tensor parallelism divides the layer.
struct LayerWork {
  std::int64_t microbatch = 1;      ///< sequences
  std::int64_t sequence = 1;        ///< tokens, of a slice where sequences come in slices
  std::int64_t whole_sequence = 0;  ///< tokens of the sequence of which this is a slice; 0: it is whole
  std::int64_t earlier_tokens = 0;  ///< tokens of its slices before this one
  int tensor_parallel = 1;
  bool sequence_parallel = false;  ///< norms, residuals and dropout work on 1/t of the tokens (Megatron's SP)
  int context_parallel = 1;        ///< ranks that share each sequence; a rank has 1/c of its tokens
  /// Context ranks exchange heads for tokens before and behind attention (Ulysses) instead of passing keys and values
  /// round a ring.
  bool exchanges_heads = false;
  ExpertDivision experts;

  bool is_slice() const { return sequence < whole_sequence; }
  /// Returns the tokens of a whole sequence.
  std::int64_t whole() const { return is_slice() ? whole_sequence : sequence; }
};

}}  // namespace plumb::kernels
