#pragma once
// `plumb calibrate --from`: a cluster file from a user's own measurements (planner/calibrate/fit_cluster.h).

#include <string>

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// Reads the files, each told by its contents; fits; writes the cluster and says how well each constant is determined.
/// Throws InputError or SpecError naming file, line and remedy.
int calibrate_from(const CalibrateArguments& arguments, const std::string& date);

}}  // namespace plumb::tools
