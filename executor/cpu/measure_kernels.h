#pragma once
// Times kernels one shape at a time, on one or more threads at once.

#include <cstdint>
#include <vector>

#include "kernels/layer.h"
#include "schedules/time.h"
#include "traces/measurement.h"

namespace plumb {

/// The ladders of measure_cpu, without their budgets.
std::vector<KernelCall> gemm_ladder();
std::vector<KernelCall> attention_ladder();
std::vector<KernelCall> other_kernel_ladder();

/// A sample for each call, smallest work first, in about `budget`. Left out are calls whose three repeats would not fit
/// what is left of it, as the call of the same kind before lets expect.
std::vector<KernelSample> measure_kernels(std::vector<KernelCall> calls, int busy_ranks, Seconds budget);

}  // namespace plumb
