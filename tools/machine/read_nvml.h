#pragma once
// GPUs and NVLinks of this machine as NVML tells of them, NVIDIA's management library that comes with the driver. It is
// opened at run time: the tool links to nothing of it.

#include <string>
#include <vector>

#include "planner/calibrate/machine_topology.h"

namespace plumb { inline namespace tools {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

/// Adds names, memory and NVLinks as NVML has them, to GPUs in the order of their PCI addresses. Returns why it could
/// not, in a sentence; empty if it did.
std::string add_nvml(MachineTopology& topology, const std::string& library = kNvmlLibrary);

struct NvmlTopology {
  MachineTopology found;           ///< no GPUs where `why` says something
  std::string why;                 ///< that it could not be read, in a sentence
  std::vector<std::string> notes;  ///< what of it is not as it seems, a sentence each
};

/// All that NVML alone knows, where /sys hides the PCI devices: names, memory, PCIe links, what lies between GPUs. No
/// network cards.
NvmlTopology read_nvml_topology(const std::string& library = kNvmlLibrary);

}}  // namespace plumb::tools
