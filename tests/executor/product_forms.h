#pragma once
// Factors of products of layouts: the ways in which state is sharded and activations are computed again, and process
// groups.

#include <utility>

#include "executor/training/run.h"
#include "schedules/passes/lower.h"

namespace plumb::test {

struct StateSharding {
  const char* name = "";
  int zero = 0;
  bool layerwise = false;
  ShardBy by = ShardBy::kElement;
};

struct Recomputation {
  const char* name = "";
  Recompute rebuild = Recompute::kNone;
  Checkpoint checkpoint = Checkpoint::kNever;  ///< the micro-batches whose R the schedule lists
};

/// Returns the run with this sharding and recomputation.
inline RunSpec with_forms(RunSpec spec, const StateSharding& sharding, const Recomputation& recomputation) {
  spec.zero = sharding.zero;
  spec.layerwise = sharding.layerwise;
  spec.shard_by = sharding.by;
  spec.rebuild = recomputation.rebuild;
  spec.rebuild_layers = recomputation.rebuild == Recompute::kFull ? 2 : 1;
  if (recomputation.checkpoint == Checkpoint::kExceptLast) spec.rebuild_which = RebuildWhich::kListed;
  return spec;
}

/// Returns the run with pairs of ranks. tensor: 0 none, 1 a pair, 2 a pair with sequence parallelism; context: 0 none,
/// 1 a ring, 2 Ulysses; expert: 0 none, 1 a pair.
inline RunSpec with_groups(RunSpec spec, int tensor, int context, int expert) {
  spec.grid.tensor = tensor > 0 ? 2 : 1;
  spec.grid.context = context > 0 ? 2 : 1;
  spec.grid.expert = expert + 1;
  spec.sequence_parallel = tensor == 2;
  spec.context_attention = context == 2 ? ContextAttention::kUlysses : ContextAttention::kRing;
  return spec;
}

}  // namespace plumb::test
