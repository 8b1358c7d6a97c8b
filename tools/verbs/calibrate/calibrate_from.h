#pragma once
// `plumb calibrate --from` makes a cluster file of a user's own measurements (planner/calibrate/fit_cluster.h).

#include <string>

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// Reads the files, whose contents tell their kinds, fits the cluster, writes it, and prints how well each constant is
/// determined. Throws InputError or SpecError with file, line and remedy.
int calibrate_from(const CalibrateArguments& arguments, const std::string& date);

}}  // namespace plumb::tools
