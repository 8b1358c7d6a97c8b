#pragma once
// Measures this machine. The planner's calibration fits the result into a cluster specification.
//
//   const Measurement measured = measure_cpu({.budget = Seconds{20}, .busy_ranks = 2, .date = "2025-01-31"});

#include <string>

#include "schedules/time.h"
#include "traces/measurement.h"

namespace plumb { inline namespace executor {

struct MeasureOptions {
  Seconds budget{20};  ///< approximate time for all measurements that are asked for
  int busy_ranks = 1;  ///< threads that run the same kernel at the same time, so that the figures include shared cores
  std::string date;    ///< written into the result unchanged
  bool gemm = true;
  bool attention = true;
  bool other_kernels = true;  ///< norms, activations, biases, rotary, residuals, embedding, cross-entropy, optimizer
  bool messages = true;       ///< messages and all-reduces through the in-process transport
};

/// Times the function of every KernelKind over a ladder of shapes, messages by size, and all-reduces by size and group.
///
/// A sample is the median, over repeats and busy ranks, of the time of one call. A call much shorter than the clock's
/// grain is timed in runs. As in a training step, the tensors that the kernel before would have made are in the cache;
/// weights, their gradients and tensors that a forward kept come from memory that goes round in 32 MiB. Numbers are
/// within 1 of 0 at the start of each run. GEMMs have 32 to 2048 tokens and 64 to 4096 channels in and out, in the
/// three forms. Shapes for whose 3 repeats the budget does not suffice are left out. Repeats are spread over the
/// budget, and are in processor time where every busy rank can have a core (executor/measure/host/measure_kernels.h).
///
/// "message" is the time from a send to its receiver's wake-up: half of a round trip, with the receive posted ahead.
/// "all_reduce" is the time from the moment at which the last rank joins to the wake-up of the slowest rank.
///
/// Throws SpecError if busy_ranks < 1 or the budget is not positive.
Measurement measure_cpu(const MeasureOptions& options = {});

}}  // namespace plumb::executor
