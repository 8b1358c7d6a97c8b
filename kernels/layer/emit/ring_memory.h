#pragma once
// The memory of attention in a ring of context ranks on a device.

#include "kernels/layer/emit/program_builder.h"

namespace plumb { inline namespace kernels {

/// Columns of a token.
struct RingColumns {
  std::int64_t keys = 0;  ///< its keys and values
  std::int64_t sums = 0;  ///< what the ring adds up for its queries
};

/// Adds what a device of a ring has besides, if there is one: the block of keys and values that is sent and the one that
/// arrives, sums by query, and in the backward the gradients of both blocks. A block has the tokens of earlier slices too.
inline void add_ring_memory(ProgramBuilder& builder, LayerStep& step, const RingColumns& columns) {
  const LayerWork& work = builder.work();
  if (!builder.on_device() || work.context_parallel == 1) return;
  const std::int64_t rows = work.microbatch * share(work.earlier_tokens + work.sequence, work.context_parallel);
  step.writes.push_back(builder.tensor("block that is sent", rows, columns.keys));
  step.writes.push_back(builder.tensor("block that arrives", rows, columns.keys));
  step.writes.push_back(builder.tensor("sums by query", builder.tokens(), columns.sums, StoredType::kSingle));
  if (step.pass == Pass::kForward) return;
  step.writes.push_back(builder.tensor("gradients that are sent", rows, columns.keys, StoredType::kSingle));
  step.writes.push_back(builder.tensor("gradients that arrive", rows, columns.keys, StoredType::kSingle));
}

}}  // namespace plumb::kernels
