#pragma once
// From a network's name and a schedule to what the executor runs.

#include "executor/run_spec.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// A network of layer_models.h on the schedule's ranks, split as `layer_model.split` says. Throws InputError for the
/// schedule, the split or the images.
RunSpec layer_model_run(const RunArguments& arguments);

}}  // namespace plumb::tools
