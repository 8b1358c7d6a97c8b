#pragma once
// The prediction of a plan on pipeline ranks that are meshes of different shape (--meshes tp2,dp2). `simulate` prints
// it, and `validate` holds it against the run.

#include <string>

#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/unequal_stages.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace tools {

struct MeshPrediction {
  UnequalStages stages;
  Evaluation evaluation;  ///< has the timeline; its rates count the meshes' devices
  int devices = 0;        ///< number of devices that the meshes need
};

/// Returns the prediction. `reshard` is direct, all-gather or broadcast; if it is empty, each pair of meshes takes the
/// fastest. If the meshes need more devices than the plan's cluster has, they are priced on so many, with a note on
/// stderr. Throws UsageError if `meshes` is no list of meshes, and SpecError as price_unequal_stages.
MeshPrediction predict_meshes(const Plan& plan, const std::string& meshes, const std::string& reshard);

}}  // namespace plumb::tools
