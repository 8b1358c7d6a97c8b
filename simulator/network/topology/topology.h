#pragma once
// The wiring of a cluster: a directed graph of vertices (devices, switches, NICs) and links with a capacity and a
// latency.
//
//   Topology trunk{.vertices = {"a", "b", "switch"}, .devices = {0, 1}, .links = {
//       {"a up", 0, 2, 1e9}, {"a down", 2, 0, 1e9}, {"b up", 1, 2, 1e9}, {"b down", 2, 1, 1e9}}};
//   shortest_path(trunk, 0, 1) -> {0, 3}
//
// A wire that carries both ways at full rate is two links. simulator/network/topology/fabric.h makes the topology of a
// cluster from a few numbers.

#include <string>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace simulator {

struct TopologyLink {
  std::string name;
  int from = 0;  ///< vertex
  int to = 0;
  double bytes_per_second = 0;  ///< capacity; infinite for a link that never holds anything up
  Seconds latency{0};
};

struct Topology {
  std::vector<std::string> vertices;  ///< names of the vertices
  std::vector<int> devices;           ///< [device] its vertex
  std::vector<TopologyLink> links;
};

/// Throws SpecError if a link or a device names a vertex that is not there, a capacity is not above 0, a latency is
/// negative, or two devices are one vertex.
void check_topology(const Topology& topology);

/// Returns the links from one device to another, in order: as few as possible, the first listed where several ways are
/// equally short. Empty from a device to itself. Throws SpecError if there is no such device or no way between the two.
std::vector<int> shortest_path(const Topology& topology, int from_device, int to_device);

/// Returns the sum of the latencies of the links.
Seconds path_latency(const Topology& topology, const std::vector<int>& links);

}}  // namespace plumb::simulator
