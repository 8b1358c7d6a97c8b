#pragma once
// Sequence slices: a micro-batch runs in pieces of nearly equal length, one after the other (Seq1F1B, Sun et al. 2024).

#include <cstdint>

namespace plumb { inline namespace executor {

/// A micro-batch, or one slice of all its sequences.
struct MicrobatchSlice {
  int microbatch = 0;
  int slice = 0;

  MicrobatchSlice(int of, int part = 0) : microbatch(of), slice(part) {}

  friend bool operator==(const MicrobatchSlice&, const MicrobatchSlice&) = default;
};

struct TokenRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Returns the tokens of slice `slice` of `slices`: [slice * sequence / slices, (slice + 1) * sequence / slices),
/// rounded down.
inline TokenRange slice_tokens(std::int64_t sequence, int slices, int slice) {
  const std::int64_t first = slice * sequence / slices;
  return {.first = first, .count = (slice + 1) * sequence / slices - first};
}

}}  // namespace plumb::executor
