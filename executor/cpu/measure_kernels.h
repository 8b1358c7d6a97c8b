#pragma once
// Times kernels one shape at a time, on one or more threads at once.

#include <cstdint>
#include <vector>

#include "kernels/layer.h"
#include "schedules/time.h"
#include "traces/measurement.h"

namespace plumb {

struct KernelLadder {
  std::vector<KernelCall> calls;  ///< shapes to time
  Seconds budget{1};              ///< for all of them
};

/// The ladders of measure_cpu, without their budgets.
std::vector<KernelCall> gemm_ladder();
std::vector<KernelCall> attention_ladder();
std::vector<KernelCall> other_kernel_ladder();

/// One sample for each call of the ladder, smallest work first, but for those whose three repeats would take longer
/// than `longest`, as estimated from the calls of the same kind before.
std::vector<KernelSample> measure_kernels(const KernelLadder& ladder, int busy_ranks, Seconds longest);

}  // namespace plumb
