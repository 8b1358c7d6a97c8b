#pragma once
// GPUs, PCIe and network cards of this machine as the kernel tells of them (/sys).

#include <string>

#include "planner/calibrate/machine_topology.h"

namespace plumb { inline namespace tools {

/// From the folder `sys`, "/sys" or one like it: bus/pci/devices, class/infiniband, class/net. GPUs without NVLink.
MachineTopology read_sys_topology(const std::string& sys);

/// One direction, behind its encoding: 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s on (PCI-SIG).
double pcie_bytes_per_second(double transfers_per_second, double lanes);

}}  // namespace plumb::tools
