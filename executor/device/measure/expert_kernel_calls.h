#pragma once
// Kernels of mixtures of experts from the planner's list (kernels/layer/kernel_call.h) on a device: the router and its
// products, the products of experts, rows to their places and back, what picks weigh. Every expert has as many rows.

#include <cstdint>
#include <vector>

#include "executor/device/measure/device_kernel_calls.h"

namespace plumb { inline namespace executor {

bool is_expert_kernel(KernelKind kind);

/// Places of rows, bounds of experts' rows, the routers' picks (device_kernel_calls.h).
std::int64_t expert_integer_count(const KernelCall& call);
std::vector<std::int32_t> expert_integers(const KernelCall& call);

/// Bytes that a call's operands take at most.
std::int64_t expert_operand_bytes(const KernelCall& call, std::int64_t element_bytes);

/// Asserts is_expert_kernel().
void enqueue_expert_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& operands);

}}  // namespace plumb::executor
