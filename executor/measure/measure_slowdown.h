#pragma once
// Measures how much slower ranks compute while a collective of the in-process transport is under way
// (slowdown_sample.h).

#include <cstdint>

#include "executor/measure/slowdown_sample.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

struct SlowdownMeasureOptions {
  int members = 2;
  std::int64_t bytes = 16 << 20;
  Seconds budget{2};  ///< approximate time for the measurement
};

/// Times the matrix products of every member, which last about twice as long as an all-reduce of all members alone.
/// Throws SpecError if there are fewer than 2 members or fewer than 4 bytes.
SlowdownSample measure_collective_slowdown(const SlowdownMeasureOptions& options);

}}  // namespace plumb::executor
