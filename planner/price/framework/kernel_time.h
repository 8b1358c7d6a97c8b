#pragma once
// What one of a framework's kernels lasts on a device.
//
//   GEMM       price/kernel/gemm_time.h, corrected by the cluster's measured shapes where there are any
//   attention  fixed + max(flops / (peak * rate), bytes / bandwidth), rate = e s / (s + s0) of the kernel on that
//   device others     fixed + bytes * traffic / bandwidth
// Products of activations (unfused attention), fused attention and the logits run in the wider precision under fp8
// (Transformer Engine and torchao quantize the products of transformer layers only). A batched
// product whose head size is not a multiple of 8 elements runs without the tensor cores' wide loads
// (DeviceSpec::misaligned).

#include "planner/price/framework/kernel.h"
#include "planner/price/kernel/kernel_price.h"
#include "planner/spec/stack_spec.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

Seconds device_kernel_time(const KernelPrices& prices, const StackSpec& stack, const DeviceKernel& kernel);

/// What a collective of the tensor group's `ranks` lasts besides its bytes: a fixed time, and one of each step of its
/// ring. Nothing of other groups.
Seconds fixed_time(const StackSpec& stack, const KernelExchange& exchange, int ranks);

}}  // namespace plumb::planner
