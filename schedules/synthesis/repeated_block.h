#pragma once
// A building block, repeated (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024): one micro-batch passes
// its stages in fixed slots of time, and the next one follows a period later. Where the pipeline fills and drains the
// repetition has holes; actions behind a hole move forward into it.
//
//   BuildingBlock block{.forward_slot = {0, 1}, .backward_slot = {3, 2}, .period = 3};
//   Schedule s = repeat_block({.microbatches = 8, .stages = loop_placement(2, 2)}, 2, block);   // ZB-H1

#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// The slots in which micro-batch 0 passes each stage, in units of one forward. No two actions of a rank may take one
/// slot modulo the period, and each stands behind its inputs.
struct BuildingBlock {
  std::vector<int> forward_slot;   ///< [stage]
  std::vector<int> backward_slot;  ///< [stage] slot of the input gradient, or the first slot of a whole backward
  int period = 0;                  ///< slots until the next micro-batch, at least a rank's work of one micro-batch
  bool whole_backwards = false;    ///< if true, backwards are B of two slots; otherwise I and W, a slot each
  /// No forward moves ahead if its rank would then hold more activations than this, from F to the last part of the
  /// backward.
  int rank_limit = 0;

  /// If true, actions move throughout. If false, none moves between the first micro-batch's end and the last one's
  /// start: there a micro-batch keeps the block's slots, and with them the slack that hides hops and unequal costs.
  bool moves_steady_state = false;
};

/// Returns the order on `ranks` ranks of the block's repetition for every micro-batch of `frame` (name, micro-batches
/// and stages of one lane; stage 0 is the first). In the order of its slots each action moves to the first free slot
/// behind its inputs and its stage's micro-batch before it. Weight gradients, oldest first, run in any free slots.
Schedule repeat_block(const Schedule& frame, int ranks, const BuildingBlock& block);

}}  // namespace plumb::schedules
