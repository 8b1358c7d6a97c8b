#pragma once
// The speed of this machine against that at its calibration. It is printed beside a measurement, and corrects nothing.

#include <optional>
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/cluster_spec.h"
#include "schedules/time.h"
#include "tools/machine/machine_load.h"

namespace plumb { inline namespace tools {

struct MachineSpeed {
  double ratio = 1;  ///< geometric mean of calibrated over measured times; below 1 the machine is slower
  int kernels = 0;
};

/// Compares two measurements of the same kernels; they are told apart by kernel and shape. Returns nothing if no kernel
/// was measured twice.
std::optional<MachineSpeed> speed_between(std::span<const KernelSample> calibrated,
                                          std::span<const KernelSample> measured);

/// Measures a few of the cluster's kernel samples again, under the same conditions (executor/measure/measure.h), in
/// about `budget`. Returns nothing if the cluster has no sample of 0.1 to 3 ms for so many busy ranks.
std::optional<MachineSpeed> machine_speed(const ClusterSpec& cluster, int busy_ranks, Seconds budget);

/// Speed of the machine before and after a run, and the load by other programs during it.
struct MachineState {
  std::optional<MachineSpeed> before;
  std::optional<MachineSpeed> after;
  std::optional<OtherPrograms> others;
};

/// Returns {"speed_before", "speed_after", "others_cores", "host_cores"}; null where nothing is known.
nlohmann::ordered_json to_json(const MachineState& state);

/// Returns a line, or an empty text where nothing is known.
std::string to_text(const MachineState& state);

}}  // namespace plumb::tools
