#pragma once
// Says which links activations cross that leave their device: OFFLOAD and RELOAD to and from the host, EVICT and LOAD
// to and from the partner rank.
//
//   network = with_moves(std::move(network), fabric, HostLinks{.devices_per_node = 8, .device_bytes_per_second = 50e9,
//                                                              .memory_bytes_per_second = 400e9}, grid, lowered);
//
//   device - host_up/host_down - (switch_up/switch_down) - host_memory      one memory for all devices of a node
//
// Evicted activations go the way of a message between the two ranks, and share its links.

#include "schedules/process_grid.h"
#include "schedules/schedule.h"
#include "simulator/network/topology/fabric.h"
#include "simulator/network/topology/network_spec.h"

namespace plumb { inline namespace simulator {

/// The part of a device's way to its host that other traffic uses as well.
enum class DeviceLink {
  kOwn,         ///< no part
  kPort,        ///< its port into the node: a PCIe node
  kAttachment,  ///< its attachment to the NIC: a NIC behind the device's own PCIe switch
};

struct HostLinks {
  int devices_per_node = 1;
  double device_bytes_per_second = 0;  ///< of one device, each way: the rate of OFFLOAD and RELOAD alone
  double memory_bytes_per_second = 0;  ///< of a node's memory, written and read together
  int devices_per_switch = 1;  ///< devices that share one link of device_bytes_per_second each way to the memory
  DeviceLink link = DeviceLink::kOwn;
};

/// Returns `placed` (by place() with that grid, none folded) with routes for the moves that the schedule has, and the links to the
/// hosts of devices that have moves: "host_up:rank3", "switch_up:node0.1", "host_memory:node0". On a port or an
/// attachment a move at its own full rate takes all of the link. Throws SpecError if a rate is not above 0.
NetworkSpec with_moves(NetworkSpec placed, const Fabric& fabric, const HostLinks& host, const ProcessGrid& grid,
                       const Schedule& lowered);

}}  // namespace plumb::simulator
