#pragma once
// Times kernels one shape at a time, on one or more threads at once.

#include <cstdint>
#include <vector>

#include "kernels/layer/layer.h"
#include "schedules/time.h"
#include "traces/measurement.h"

namespace plumb { inline namespace executor {

/// The ladders of measure_cpu, without their budgets.
std::vector<KernelCall> gemm_ladder();
std::vector<KernelCall> attention_ladder();
std::vector<KernelCall> other_kernel_ladder();

struct KernelLadder {
  std::vector<KernelCall> calls;
  Seconds budget{0};  ///< about
};

/// A sample for each call of each ladder, smallest work first. Left out are calls whose three repeats would not fit
/// what is left of their ladder's budget, as the call of the same kind before lets expect.
///
/// The repeats of a call are spread over several rounds through all ladders, so that a moment at which the machine is
/// slow is in some repeats of every call and not in all of one. A repeat lasts what its thread has had of a processor
/// where every busy rank can have a core of its own: what other programs take away is not in it. Where ranks share
/// cores it lasts what the clock says.
std::vector<KernelSample> measure_kernels(std::vector<KernelLadder> ladders, int busy_ranks);
std::vector<KernelSample> measure_kernels(std::vector<KernelCall> calls, int busy_ranks, Seconds budget);

}}  // namespace plumb::executor
