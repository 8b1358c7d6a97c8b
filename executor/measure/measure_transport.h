#pragma once
// Times the in-process transport: messages by size, all-reduces by size and group.

#include <vector>

#include "schedules/time.h"
#include "traces/measurement.h"

namespace plumb { inline namespace executor {

/// Returns "message" {bytes} and "all_reduce" {bytes, group size} samples, for groups of 2 and 4. Takes about `budget`.
std::vector<KernelSample> measure_transport(Seconds budget);

}}  // namespace plumb::executor
