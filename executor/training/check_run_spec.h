#pragma once
// Conditions that a RunSpec must meet before its ranks start.

#include "executor/spec/run_spec.h"

namespace plumb { inline namespace executor {

/// Throws SpecError (InputError for the data and the checkpoint) with the place and the remedy if numbers are out of
/// range, if the stages do not match the schedule or do not form a model (require_trainable), if ranks cannot divide a
/// layer or its tokens as the grid asks, or if the checkpoint to resume from is of another training.
void require_runnable(const RunSpec& spec);

}}  // namespace plumb::executor
