#pragma once
// A plan on pipeline ranks that are meshes of different shape (--meshes tp2,dp2): what `simulate` prints, and what
// `validate` holds against the run.

#include <string>

#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/unequal_stages.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace tools {

struct MeshPrediction {
  UnequalStages stages;
  Evaluation evaluation;  ///< with the timeline; its rates count the meshes' devices
  int devices = 0;        ///< that the meshes need
};

/// `reshard`: direct, all-gather or broadcast; empty: the fastest for each pair of meshes. Says on stderr where the
/// meshes need more devices than the plan's cluster has, and prices them on so many. Throws InputError if `meshes` is
/// no list of meshes, SpecError as price_unequal_stages does.
MeshPrediction predict_meshes(const Plan& plan, const std::string& meshes, const std::string& reshard);

}}  // namespace plumb::tools
