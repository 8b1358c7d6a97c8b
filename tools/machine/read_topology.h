#pragma once
// GPUs, NVLinks, PCIe and network cards of this machine, as the kernel (/sys) and NVML, NVIDIA's management library
// that comes with the driver, tell of them. NVML is opened at run time: the tool links to nothing of it.

#include <string>

#include "planner/calibrate/machine_topology.h"

namespace plumb {

/// From the folder `sys`, "/sys" or one like it: bus/pci/devices, class/infiniband, class/net. GPUs without NVLink.
MachineTopology read_sys_topology(const std::string& sys);

/// Adds names, memory and NVLinks as NVML has them, to GPUs in the order of their PCI addresses. Returns why it could
/// not, in a sentence; empty if it did.
std::string add_nvml(MachineTopology& topology, const std::string& library = "libnvidia-ml.so.1");

}  // namespace plumb
