#pragma once
// A network's name and a schedule become the spec of a run.

#include "executor/spec/run_spec.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// Returns the spec of a network of layer_models.h on the schedule's ranks, split as `layer_model.split` says. Throws
/// InputError if the schedule, the split or the images are not valid.
RunSpec layer_model_run(const RunArguments& arguments);

}}  // namespace plumb::tools
