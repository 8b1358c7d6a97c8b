#pragma once
// How the GPUs of this machine hang together, from whoever knows: /sys with NVML beside it; NVML alone, where /sys
// hides the PCI devices (containers, some clouds); the table that `nvidia-smi topo -m` prints.

#include <string>
#include <vector>

#include "planner/calibrate/machine_topology.h"
#include "tools/machine/read_nvml.h"

namespace plumb { inline namespace tools {

struct FoundTopology {
  MachineTopology topology;
  std::string source;              ///< "/sys and NVML": who knew
  std::vector<std::string> notes;  ///< what is not known, or was not to be had, a sentence each
};

/// nvidia-smi is found on PATH. Throws InputError if none of them knows a GPU, with what each said and the remedy.
FoundTopology find_topology(const std::string& sys = "/sys", const std::string& nvml = kNvmlLibrary);

}}  // namespace plumb::tools
