#pragma once
// A block's attention on the CPU: among tokens that are all on this rank, that come in slices, or that go round a ring.
// Ranks that exchange heads for tokens attend to whole sequences. T tokens on this rank, a heads, k kv heads and d
// channels a head of this tensor rank.

#include "executor/layers/host/host_step.h"

namespace plumb { inline namespace executor {

/// Returns the elements of context.scratch that a block's attention needs; 0 for another layer.
std::int64_t attention_scratch_of(const HostProgram& program, const LayerSeat& seat);

/// Runs a kAttentionForward or kAttentionBackward step, in a ring together with the exchanges of kRing and kRingSum. In
/// the backward the last slice must come first: when a slice's turn comes, the slices behind it have added the
/// gradients of its keys and values.
void attend(const HostStep& of);

}}  // namespace plumb::executor
