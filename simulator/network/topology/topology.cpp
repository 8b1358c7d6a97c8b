#include "simulator/network/topology/topology.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>

#include "schedules/error.h"

namespace plumb { inline namespace simulator {
namespace {

using LinkGraph =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, int>;  // an edge's property is its link
using Vertex = boost::graph_traits<LinkGraph>::vertex_descriptor;

LinkGraph graph_of(const Topology& topology) {
  std::vector<std::pair<int, int>> ends;
  std::vector<int> numbers;
  for (const TopologyLink& link : topology.links) {
    numbers.push_back(static_cast<int>(numbers.size()));
    ends.emplace_back(link.from, link.to);
  }
  return {boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), numbers.begin(), topology.vertices.size()};
}

/// Records [vertex] the link by which a breadth-first search reaches it; -1 if it does not.
class ArrivalVisitor : public boost::default_bfs_visitor {
 public:
  explicit ArrivalVisitor(std::vector<int>& arrival) : arrival_(arrival) {}
  void tree_edge(boost::graph_traits<LinkGraph>::edge_descriptor edge, const LinkGraph& graph) {
    arrival_[target(edge, graph)] = graph[edge];
  }

 private:
  std::vector<int>& arrival_;
};

void require_device(const Topology& topology, int device) {
  if (device < 0 || device >= static_cast<int>(topology.devices.size())) {
    throw SpecError(fmt::format("device {} is not in the topology: give 0 to {}", device,
                                static_cast<int>(topology.devices.size()) - 1));
  }
}

}  // namespace

void check_topology(const Topology& topology) {
  const auto is_vertex = [&](int vertex) { return vertex >= 0 && vertex < static_cast<int>(topology.vertices.size()); };
  for (const TopologyLink& link : topology.links) {
    if (!is_vertex(link.from) || !is_vertex(link.to)) {
      throw SpecError(fmt::format("link {} goes from vertex {} to vertex {}, but the topology has {} vertices",
                                  link.name, link.from, link.to, topology.vertices.size()));
    }
    if (!(link.bytes_per_second > 0)) {
      throw SpecError(fmt::format("link {} has a capacity of {} bytes/s: give one above 0, or leave the link out",
                                  link.name, link.bytes_per_second));
    }
    if (!(link.latency.count() >= 0)) {
      throw SpecError(fmt::format("link {} has a latency of {} s: give 0 or more", link.name, link.latency.count()));
    }
  }
  std::vector<int> taken(topology.vertices.size(), -1);
  for (std::size_t device = 0; device < topology.devices.size(); ++device) {
    const int vertex = topology.devices[device];
    if (!is_vertex(vertex)) {
      throw SpecError(fmt::format("device {} is vertex {}, but the topology has {} vertices", device, vertex,
                                  topology.vertices.size()));
    }
    if (taken[vertex] >= 0) {
      throw SpecError(fmt::format("devices {} and {} are both vertex {}: give each its own", taken[vertex], device,
                                  topology.vertices[vertex]));
    }
    taken[vertex] = static_cast<int>(device);
  }
}

std::vector<int> shortest_path(const Topology& topology, int from_device, int to_device) {
  require_device(topology, from_device);
  require_device(topology, to_device);
  const int from = topology.devices[from_device];
  const int to = topology.devices[to_device];
  std::vector<int> arrival(topology.vertices.size(), -1);
  const LinkGraph graph = graph_of(topology);
  boost::breadth_first_search(graph, static_cast<Vertex>(from), boost::visitor(ArrivalVisitor(arrival)));
  std::vector<int> path;
  for (int vertex = to; vertex != from; vertex = topology.links[path.back()].from) {
    if (arrival[vertex] < 0) {
      throw SpecError(
          fmt::format("no links lead from device {} ({}) to device {} ({}), which exchange data: connect them",
                      from_device, topology.vertices[from], to_device, topology.vertices[to]));
    }
    path.push_back(arrival[vertex]);
  }
  std::ranges::reverse(path);
  return path;
}

Seconds path_latency(const Topology& topology, const std::vector<int>& links) {
  Seconds latency{0};
  for (const int link : links) latency += topology.links[link].latency;
  return latency;
}

}}  // namespace plumb::simulator
