#pragma once
// `plumb calibrate --only collectives` measures the in-process collectives of this machine, beside the model.

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// Prints time, algorithm and bus bandwidth of each collective by size, by ring and by tree, beside the prediction of
/// the planner's model of rings with the link that messages between two ranks have shown. Prints also the slowdown of
/// computing beside them. Writes no file.
int calibrate_collectives(const CalibrateArguments& arguments);

}}  // namespace plumb::tools
