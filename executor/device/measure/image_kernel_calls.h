#pragma once
// Kernels of models that read images or vectors from the planner's list (kernels/layer/kernel_call.h) on a device: a
// convolution as its layer does it, patches and products chunk by chunk; poolings, ReLU, dropout, the squared error.

#include <cstdint>

#include "executor/device/measure/device_kernel_calls.h"

namespace plumb {

bool is_image_kernel(KernelKind kind);

/// Bytes that a call's operands take at most.
std::int64_t image_operand_bytes(const KernelCall& call, std::int64_t element_bytes);

/// Asserts is_image_kernel().
void enqueue_image_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& operands);

}  // namespace plumb
