#pragma once
// The links between the GPUs of this machine are read from the first source that knows them: /sys together with NVML;
// NVML alone, where /sys hides the PCI devices (containers, some clouds); the table that `nvidia-smi topo -m` prints.

#include <string>
#include <vector>

#include "planner/calibrate/machine_topology.h"
#include "tools/machine/read_nvml.h"

namespace plumb { inline namespace tools {

struct FoundTopology {
  MachineTopology topology;
  std::string source;              ///< the source that knew, "/sys and NVML"
  std::vector<std::string> notes;  ///< a sentence for each thing that is not known
};

/// Returns the topology of this machine; nvidia-smi is found on PATH. Throws InputError if no source knows a GPU, with
/// the reason of each and the remedy.
FoundTopology find_topology(const std::string& sys = "/sys", const std::string& nvml = kNvmlLibrary);

}}  // namespace plumb::tools
