#pragma once
// GPUs and NVLinks of this machine are read from NVML, the management library that comes with NVIDIA's driver. It is
// opened at run time; the tool does not link to it.

#include <string>
#include <vector>

#include "planner/calibrate/machine_topology.h"

namespace plumb { inline namespace tools {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

/// Adds NVML's names, memory and NVLinks to GPUs in the order of their PCI addresses. Returns an empty text, or the
/// reason if nothing could be added, as a sentence.
std::string add_nvml(MachineTopology& topology, const std::string& library = kNvmlLibrary);

struct NvmlTopology {
  MachineTopology found;           ///< without GPUs if `why` is not empty
  std::string why;                 ///< the reason if nothing could be read, as a sentence
  std::vector<std::string> notes;  ///< a sentence for each GPU that is not as it seems
};

/// Returns what NVML alone knows, for machines where /sys hides the PCI devices: names, memory, PCIe links and the
/// paths between GPUs, without network cards.
NvmlTopology read_nvml_topology(const std::string& library = kNvmlLibrary);

}}  // namespace plumb::tools
