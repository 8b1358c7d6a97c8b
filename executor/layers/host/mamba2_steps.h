#pragma once
// The steps of Mamba-2's mixer on the CPU (kernels/layer/emit/mamba2.cpp). Where sequences come in slices, each slice
// begins with the states and the rows of the convolution that the slice before has left, and its backward takes on their
// gradients from the slice behind.

#include "executor/layers/host/host_step.h"

namespace plumb { inline namespace executor {

/// True if the kernel is one of these.
bool is_of_mamba2(const HostStep& of);
void run_mamba2_kernel(const HostStep& of);

/// Returns the elements of context.scratch that these kernels need; 0 for other layers.
std::int64_t mamba2_scratch_of(const HostProgram& program);

}}  // namespace plumb::executor
