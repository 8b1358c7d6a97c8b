#include "planner/partition/placement_input.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

using nlohmann::json;

json node(int id, int colour, double milliseconds, const json& backward) {
  return {{"id", id}, {"colorClass", colour}, {"fpgaLatency", milliseconds}, {"isBackwardNode", backward}, {"size", 8}};
}

json edge(int from, int to, double bytes) {
  return {{"sourceId", from}, {"destId", to}, {"cost", 0}, {"size", bytes}};
}

json placement() {
  return {{"nodes", {node(1, 1, 2, 0), node(2, 2, 3, 0), node(11, 1, 4, true), node(12, 2, 6, true)}},
          {"edges", {edge(1, 2, 5), edge(2, 12, 1), edge(12, 11, 7)}}};
}

}  // namespace

TEST_CASE("forward and backward of one colour are one node, and forward edges are the edges") {
  const ProfiledGraph read = parse_placement_input(placement().dump(), "d.json");
  REQUIRE(num_vertices(read) == 2);
  CHECK(read[0].ways.front().seconds.count() == doctest::Approx(6e-3));
  CHECK(read[0].ways.front().state_bytes == 16);
  CHECK(read[0].output_bytes == 5);
  CHECK(num_edges(read) == 1);
}

TEST_CASE("an input of dnn-partitioning that is wrong is refused by its place") {
  json wrong = placement();
  wrong["edges"].push_back(edge(2, 1, 1));
  check_refused<SpecError>([&] { parse_placement_input(wrong.dump(), "d.json"); }, "d.json", "cycle");
  wrong["edges"].push_back(edge(2, 5, 1));
  check_refused<SpecError>([&] { parse_placement_input(wrong.dump(), "d.json"); }, "edges[4].destId", "no such node");
}

}  // namespace plumb::test
