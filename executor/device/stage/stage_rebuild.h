#pragma once
// What a device computes again of a stage's micro-batches, and how much of it stands at once.

#include <cstddef>
#include <vector>

#include "executor/run_spec.h"

namespace plumb { inline namespace executor {

struct StageRebuild {
  Rebuild what = Rebuild::kNothing;
  int layers = 1;       ///< of Rebuild::kLayers
  bool at_once = true;  ///< all that is rebuilt stands until the backward's end, as the schedule has an R;
                        ///< otherwise B or I rebuilds group by group (of kSelective layer by layer)
  bool splits = false;  ///< group by group: I and W are apart, so that what W needs of all groups stands until then

  /// F keeps inputs of groups alone.
  bool keeps_inputs() const { return what == Rebuild::kStage || what == Rebuild::kLayers; }
};

/// Of a stage's micro-batches that are computed again, if any is.
StageRebuild stage_rebuild(const RunSpec& spec, std::size_t stage);

/// [micro-batch] those that list no R where R says which are computed again, and some of the stage's others list one.
/// Empty: all are alike.
std::vector<bool> kept_microbatches(const RunSpec& spec, std::size_t stage);

}}  // namespace plumb::executor
