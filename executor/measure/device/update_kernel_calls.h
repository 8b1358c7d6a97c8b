#pragma once
// Enqueues an optimizer's update from the planner's list (kernels/layer/kernel_call.h) on a device.

#include <cstdint>

#include "executor/measure/device/device_kernel_calls.h"

namespace plumb { inline namespace executor {

bool is_update_kernel(KernelKind kind);

/// Returns the most bytes of a call's operands.
std::int64_t update_operand_bytes(const KernelCall& call, std::int64_t element_bytes);

/// Enqueues the call. Asserts is_update_kernel().
void enqueue_update_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& operands);

}}  // namespace plumb::executor
