#pragma once
// The number of channels that NCCL opens for a group, and the rate that it assumes for each.
//
//   GroupPlacement group{.ranks = 8};
//   nccl_graphs(machine, group).ring   // 8 H100: 12 channels of 30 GB/s
//
// NCCL searches the topology for rings and trees at one of a few speeds, and takes the fastest that fits. On a node of
// equal devices the search gives:
//   one node       the speed s whose floor(links / s) channels use most of a device's links; then twice as many
//                  channels at half of it, unless s < 25 GB/s, or s < 50 GB/s on more than 4 channels since Hopper
//   several nodes  a channel for each NIC of the group, at the fastest speed that its NIC and the device's links carry;
//                  a tree's hops inside the node up to twice as fast
//   NVLS           a channel for each device (across nodes: for each NIC), at the fastest s with (channels + 1) s of
//                  the device's links
// A group that has g of a node's d devices gets g / d of the node's NICs. A NIC that is faster than any channel has
// several channels. NCCL counts 20 of an NVLink's 25 GB/s (Hopper 20.6, Blackwell 40.1 of 50), 12 of 16 GB/s of PCIe
// and 12 of a NIC's 12.5 GB/s. Source: NVIDIA/nccl v2.30.7 src/graph/search.cc and topo.h (Apache-2.0, facts restated).

#include "planner/price/collective/group_placement.h"
#include "planner/spec/nccl_spec.h"

namespace plumb { inline namespace planner {

/// A specification and the machine around it.
struct NcclMachine {
  NcclSpec spec;
  int devices_per_node = 1;
  double link_bytes_per_second = 0;  ///< line rate of a device inside its node, one direction
  int nics = 1;                      ///< NICs of a node
  double nic_bytes_per_second = 0;   ///< line rate of all NICs of a node together; 0: there is one node
  double copy_bytes_per_second = 0;  ///< rate of a copy in a device's memory, its bytes counted once; 0: it is free
};

struct NcclGraphs {
  NcclChannels ring;
  NcclChannels tree;
  NcclChannels nvls;  ///< no channels: the machine has none
};

/// Returns the rate at which a device exchanges bytes with its node, one direction, as NCCL counts it.
double inside_bytes_per_second(const NcclMachine& machine);

/// Returns the rate at which the group's ranks of one node exchange bytes with other nodes, one direction, as NCCL
/// counts it.
double between_bytes_per_second(const NcclMachine& machine, const GroupPlacement& group);

/// Returns the channels of a group. Channels that the specification gives replace searched ones. A group of several
/// nodes needs a machine with NICs.
NcclGraphs nccl_graphs(const NcclMachine& machine, const GroupPlacement& group);

}}  // namespace plumb::planner
