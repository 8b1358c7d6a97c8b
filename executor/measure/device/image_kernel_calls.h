#pragma once
// Enqueues kernels of models that read images or vectors, from the planner's list (kernels/layer/kernel_call.h), on a
// device: a convolution as its layer computes it, by patches and products chunk by chunk; poolings, ReLU, dropout, the
// squared error.

#include <cstdint>
#include <vector>

#include "executor/measure/device/device_kernel_calls.h"

namespace plumb { inline namespace executor {

bool is_image_kernel(KernelKind kind);

/// Return the places of the largest elements in their windows, for the backward of such a pooling
/// (device_kernel_calls.h).
std::int64_t image_integer_count(const KernelCall& call);
std::vector<std::int32_t> image_integers(const KernelCall& call);

/// Returns the most bytes of a call's operands.
std::int64_t image_operand_bytes(const KernelCall& call, std::int64_t element_bytes);

/// Enqueues the call. Asserts is_image_kernel().
void enqueue_image_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& operands);

}}  // namespace plumb::executor
