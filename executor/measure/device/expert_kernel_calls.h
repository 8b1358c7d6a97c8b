#pragma once
// Enqueues kernels of mixtures of experts from the planner's list (kernels/layer/kernel_call.h) on a device: the router
// and its products, the products of experts, copies of rows to their places and back, the weighing of picks. Every
// expert has equally many rows.

#include <cstdint>
#include <vector>

#include "executor/measure/device/device_kernel_calls.h"

namespace plumb { inline namespace executor {

bool is_expert_kernel(KernelKind kind);

/// Return the places of rows, bounds of experts' rows and routers' picks that a call reads (device_kernel_calls.h).
std::int64_t expert_integer_count(const KernelCall& call);
std::vector<std::int32_t> expert_integers(const KernelCall& call);

/// Returns the most bytes of a call's operands.
std::int64_t expert_operand_bytes(const KernelCall& call, std::int64_t element_bytes);

/// Enqueues the call. Asserts is_expert_kernel().
void enqueue_expert_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& operands);

}}  // namespace plumb::executor
