#pragma once
// Measured graphs that the tests share.

#include <random>
#include <vector>

#include "planner/partition/profiled_graph.h"

namespace plumb::test {

/// Returns a chain whose nodes take these times, with outputs and weights of nothing.
inline ProfiledGraph chain_graph(const std::vector<double>& seconds) {
  ProfiledGraph graph;
  for (const double time : seconds) add_vertex({.name = "node", .ways = {NodeWay{.seconds = Seconds{time}}}}, graph);
  for (std::size_t node = 1; node < seconds.size(); ++node) add_edge(node - 1, node, {}, graph);
  return graph;
}

/// Returns a graph of up to `most` nodes with whole numbers as costs. Every node but the first reads one before it, so
/// that PipeDream's optimizer reaches all of them.
inline ProfiledGraph random_graph(std::mt19937& random, int most) {
  const int nodes = 2 + static_cast<int>(random() % static_cast<unsigned>(most - 1));
  ProfiledGraph graph;
  for (int node = 0; node < nodes; ++node) {
    add_vertex({.name = "node",
                .output_bytes = static_cast<double>(random() % 8),
                .ways = {NodeWay{.seconds = Seconds{static_cast<double>(1 + random() % 20)},
                                 .weight_bytes = static_cast<double>(random() % 6),
                                 .in_flight_bytes = static_cast<double>(random() % 5),
                                 .state_bytes = static_cast<double>(random() % 10)}}},
               graph);
    if (node == 0) continue;
    const int first = static_cast<int>(random() % static_cast<unsigned>(node));
    for (int input = 0; input < node; ++input)
      if (input == first || random() % 5 == 0)
        add_edge(input, node, {.bytes = graph[static_cast<std::size_t>(input)].output_bytes}, graph);
  }
  return graph;
}

}  // namespace plumb::test
