#pragma once
// How a device recomputes activations of a stage's micro-batches, and how many of them stand at once.

#include <cstddef>
#include <vector>

#include "executor/spec/run_spec.h"

namespace plumb { inline namespace executor {

struct StageRebuild {
  Recompute what = Recompute::kNone;
  int layers = 1;  ///< of a group, with Recompute::kFull
  /// All recomputed activations stand until the backward's end, as the schedule has an R. Otherwise B or I recomputes
  /// group by group (with kSelective layer by layer).
  bool at_once = true;
  /// Group by group: I and W are apart, so that the activations which W needs of all groups stand until W.
  bool splits = false;

  /// True if F keeps the inputs of groups alone.
  bool keeps_inputs() const { return what == Recompute::kStage || what == Recompute::kFull; }
};

/// Returns the recomputation of those micro-batches of a stage that are computed again.
StageRebuild stage_rebuild(const RunSpec& spec, std::size_t stage);

/// [micro-batch] true if its activations are kept: the schedule lists no R for it, R says which micro-batches are
/// computed again, and some other micro-batch of the stage has one. Empty if all micro-batches are alike.
std::vector<bool> kept_microbatches(const RunSpec& spec, std::size_t stage);

}}  // namespace plumb::executor
