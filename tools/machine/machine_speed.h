#pragma once
// Whether a machine is still as fast as when it was calibrated. It is told beside a measurement, and corrects nothing.

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/cluster_spec.h"
#include "schedules/time.h"
#include "tools/machine/machine_load.h"

namespace plumb { inline namespace tools {

struct MachineSpeed {
  double ratio = 1;  ///< geometric mean of calibrated over measured times; below 1: slower than calibrated
  int kernels = 0;
};

/// A few of the cluster's kernel samples measured again, as they were (executor/measure/measure.h), in about `budget`.
/// Nothing where the cluster has none for so many busy ranks that are short enough.
std::optional<MachineSpeed> machine_speed(const ClusterSpec& cluster, int busy_ranks, Seconds budget);

/// What the machine was like while something ran on it.
struct MachineState {
  std::optional<MachineSpeed> before;
  std::optional<MachineSpeed> after;
  std::optional<OtherPrograms> others;
};

/// {"speed_before", "speed_after", "others_cores", "host_cores"}; null where nothing is known.
nlohmann::ordered_json to_json(const MachineState& state);

/// A line; empty where nothing is known.
std::string to_text(const MachineState& state);

}}  // namespace plumb::tools
