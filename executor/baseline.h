#pragma once
// The same training on one rank: what every layout is compared with.

#include "executor/run_spec.h"

namespace plumb { inline namespace executor {

/// `spec` with its whole model on one rank and all micro-batches of a step, of all replicas, one after the other.
/// Samples, initial weights and dropout stay what they are. Throws SpecError if the schedule is asynchronous: one rank
/// then computes something else.
RunSpec baseline_of(const RunSpec& spec);

}}  // namespace plumb::executor
