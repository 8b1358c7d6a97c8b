#pragma once
// The steps of a layer's program that are one kernel of the CPU.

#include "executor/layers/host/host_step.h"

namespace plumb { inline namespace executor {

/// Runs such a step. Asserts that it is one.
void run_kernel(const HostStep& of);

/// Returns the elements of context.scratch that a layer needs which convolves.
std::int64_t convolution_scratch_of(const HostProgram& program);

}}  // namespace plumb::executor
