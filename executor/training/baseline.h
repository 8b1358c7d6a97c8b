#pragma once
// The training of any layout, done on one rank: every layout's losses and gradients are compared with it.

#include "executor/spec/run_spec.h"

namespace plumb { inline namespace executor {

/// Returns `spec` with its whole model on one rank and all micro-batches of a step, of all replicas, one after the
/// other. Samples, initial weights and dropout masks stay as they are. Throws SpecError if the schedule is
/// asynchronous, since one rank then computes something else.
RunSpec baseline_of(const RunSpec& spec);

}}  // namespace plumb::executor
