#pragma once
// `plumb calibrate --only collectives`: what the in-process collectives last on this machine, beside the model.

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// Prints time, algorithm and bus bandwidth of each collective by size, by ring and by tree, and what the planner's
/// model of rings says of it with the link that messages between two ranks have shown; and how much slower the ranks
/// compute beside them. Writes no file.
int calibrate_collectives(const CalibrateArguments& arguments);

}}  // namespace plumb::tools
