#include "planner/partition/downsets.h"

#include <doctest/doctest.h>

#include "tests/planner/partition/graphs.h"

namespace plumb::test {
TEST_CASE("a diamond has six downsets, and each of them holds the inputs of its nodes") {
  ProfiledGraph graph = chain_graph({1, 1});
  add_vertex({.ways = {NodeWay{}}}, graph);
  add_vertex({.ways = {NodeWay{}}}, graph);
  add_edge(0, 2, {}, graph);
  add_edge(1, 3, {}, graph);
  add_edge(2, 3, {}, graph);
  const Downsets downsets = downsets_of(graph, topological_order(graph, "graph"), 100, 10);
  CHECK(downsets.all);
  CHECK_FALSE(downsets.chain);
  CHECK(downsets.sets.size() == 6);
  CHECK(downsets.sets.front().none());
  CHECK(downsets.sets.back().count() == 4);
  graph[1].output_bytes = 3;
  CHECK(bytes_out(graph, downsets.sets.front()) == 0);
  CHECK(bytes_out(graph, NodeSet(4, 0b0011)) == 3);
}

TEST_CASE("where there are too many downsets, beginnings of one order lie about as far apart in time") {
  const ProfiledGraph graph = chain_graph({1, 1, 1, 1, 4, 1, 1, 1, 1});
  const Downsets downsets = downsets_of(graph, topological_order(graph, "graph"), 5, 3);
  CHECK_FALSE(downsets.all);
  CHECK(downsets.chain);
  REQUIRE(downsets.sets.size() == 4);
  CHECK(downsets.sets[1].count() == 4);
  CHECK(downsets.sets[2].count() == 5);
  CHECK(downsets.sets[3].count() == 9);
}

TEST_CASE("unconnected nodes may come in any order") {
  ProfiledGraph graph;
  for (int node = 0; node < 3; ++node) add_vertex({.ways = {NodeWay{}}}, graph);
  CHECK(downsets_of(graph, topological_order(graph, "graph"), 100, 10).sets.size() == 8);
}

}  // namespace plumb::test
