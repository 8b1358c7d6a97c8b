#pragma once
// Times kernels one shape at a time, on one or more threads at once.

#include <cstdint>
#include <vector>

#include "kernels/layer.h"
#include "schedules/time.h"
#include "traces/measurement.h"

namespace plumb { inline namespace executor {

/// Return the shapes that measure_cpu times, without budgets.
std::vector<KernelCall> gemm_ladder();
std::vector<KernelCall> attention_ladder();
std::vector<KernelCall> other_kernel_ladder();

struct KernelLadder {
  std::vector<KernelCall> calls;
  Seconds budget{0};  ///< approximate time for all calls
};

/// Returns a sample for each call of each ladder, smallest work first. A call is left out if its three repeats would
/// not fit into the rest of its ladder's budget, estimated from the call of the same kind before it.
///
/// The repeats of a call are spread over several rounds through all ladders, so that a moment in which the machine is
/// slow falls on some repeats of every call and not on all repeats of one. Where every busy rank can have a core of its
/// own, a repeat lasts as long as its thread had a processor, which leaves out the time that other programs take. Where
/// ranks share cores, it lasts as long as the clock says.
std::vector<KernelSample> measure_kernels(std::vector<KernelLadder> ladders, int busy_ranks);
std::vector<KernelSample> measure_kernels(std::vector<KernelCall> calls, int busy_ranks, Seconds budget);

}}  // namespace plumb::executor
