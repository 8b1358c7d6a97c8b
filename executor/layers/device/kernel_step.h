#pragma once
// The steps of a layer's program that are one kernel of a device: products, norms, activations, biases, sums, copies,
// dropout, pooling.

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

/// Enqueues such a step. Asserts that it is one.
void enqueue_kernel(const StepCall& of);

}}  // namespace plumb::executor
