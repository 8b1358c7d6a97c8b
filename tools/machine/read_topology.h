#pragma once
// GPUs, PCIe and network cards of this machine are read from the kernel (/sys).

#include <string>

#include "planner/calibrate/machine_topology.h"

namespace plumb { inline namespace tools {

/// Returns the topology that the folder `sys` ("/sys" or one like it) has in bus/pci/devices, class/infiniband and
/// class/net. It has no NVLinks.
MachineTopology read_sys_topology(const std::string& sys);

/// Returns the bandwidth in one direction without the encoding: 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s on
/// (PCI-SIG).
double pcie_bytes_per_second(double transfers_per_second, double lanes);

}}  // namespace plumb::tools
