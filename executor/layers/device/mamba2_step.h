#pragma once
// The kernels of Mamba-2's mixer on a device, over whole sequences.

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

bool is_of_mamba2(KernelKind kind);

/// Enqueues such a kernel.
void enqueue_mamba2(const StepCall& of);

}}  // namespace plumb::executor
