#pragma once
// The script that starts a target's run under Slurm: one launcher a node, which starts a process for each device.

#include <string>

#include "planner/exchange/target.h"

namespace plumb { inline namespace planner {

/// The nodes of a run, and the devices of each, which have a process each.
struct LaunchedDevices {
  int nodes = 1;
  int per_node = 1;
};

/// Returns the devices of a run on nodes of so many: as many nodes as it fills. Throws SpecError if it leaves a part of
/// its last node empty, which no launcher does.
LaunchedDevices launched_devices(int devices, int devices_per_node);

/// Returns the script; `file` has the target's settings, and `name` is the job's.
std::string slurm_script(const Target& target, const LaunchedDevices& devices, const std::string& name,
                         const std::string& file);

}}  // namespace plumb::planner
