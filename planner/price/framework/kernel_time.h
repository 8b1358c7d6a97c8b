#pragma once
// The time of one of a framework's kernels on a device.
//
//   GEMM       price/kernel/gemm_time.h, corrected by the cluster's measured shapes where there are any
//   attention  fixed + max(flops / (peak * rate), bytes / bandwidth), rate = e s / (s + s0) of kernel and device
//   others     fixed + bytes * traffic / bandwidth
// Under fp8, products of activations (unfused attention), fused attention and the logits run in the wider precision
// (Transformer Engine and torchao quantize only the products of transformer layers). A batched product whose head size
// is not a multiple of 8 elements runs without the tensor cores' wide loads (DeviceSpec::misaligned_by_4,
// misaligned_by_2).

#include "planner/price/framework/kernel.h"
#include "planner/price/kernel/kernel_price.h"
#include "planner/spec/stack_spec.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

Seconds device_kernel_time(const KernelPrices& prices, const StackSpec& stack, const DeviceKernel& kernel);

/// Returns the time of a collective of the tensor group's `ranks` besides its bytes: a fixed time, and one for each
/// step of its ring. Returns 0 for other groups.
Seconds fixed_time(const StackSpec& stack, const KernelExchange& exchange, int ranks);

}}  // namespace plumb::planner
