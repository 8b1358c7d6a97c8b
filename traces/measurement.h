#pragma once
// A Measurement holds the results of calibration on a machine: how long one kernel or one transfer of a given shape
// takes. The executor makes Measurements, the planner fits them into a cluster specification; neither knows the other.

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace traces {

struct KernelSample {
  std::string kernel;               ///< the name of a KernelKind (kernels/layer.h), or "message" / "all_reduce"
  std::vector<std::int64_t> shape;  ///< as that kind defines it; "message": {bytes}; "all_reduce": {bytes, group size}
  Seconds median{0};                ///< median duration of one call
  Seconds fastest{0};
  Seconds slowest{0};
  int repeats = 0;
  int busy_ranks = 1;  ///< number of ranks that ran the same call at the same time
  Seconds host{0};     ///< time in which the host launches the call on all of them; 0: it does not launch, or not known
};

struct Measurement {
  std::string backend;  ///< "cpu"
  std::string device;   ///< the machine's own name for it
  int cores = 0;
  std::int64_t memory_bytes = 0;
  std::string date;  ///< ISO 8601, as the caller gives it
  std::vector<KernelSample> samples;
};

}}  // namespace plumb::traces
