#pragma once
// A block's attention on a device: of all tokens of a sequence, of slices of it that come one after the other, or of
// tokens that the ranks of a context group share. Ranks that exchange heads for tokens attend to whole sequences.

#include <optional>

#include "executor/layers/device/ring_attention.h"
#include "executor/layers/device/slice_attention.h"
#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

class AttentionStep {
 public:
  /// `program` is that of a block. Adds the bytes that slices keep of sequences to `bytes`.
  AttentionStep(const PlacedProgram& program, DeviceLayerBytes& bytes);

  /// Enqueues a kAttentionForward or kAttentionBackward step, in a ring together with the exchanges of kRing and
  /// kRingSum.
  void enqueue(const StepCall& of) const;

 private:
  /// Returns the size with the mask of this micro-batch's probabilities.
  AttentionSize size_in(const StepCall& of) const;

  AttentionSize size_;  // of the heads and tokens that this rank attends to
  double dropout_ = 0;
  std::int64_t first_head_ = 0;
  std::int64_t first_sink_ = 0;  // number of the first of these heads among the tensor rank's
  std::optional<RingAttention> ring_;
  std::optional<SliceAttention> slices_;
};

}}  // namespace plumb::executor
