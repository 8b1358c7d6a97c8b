#include "planner/price/collective/nccl_occupied_units.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

NcclMachine a100(double nics_gb_per_s) {
  return {.spec = {.generation = NcclGeneration::kAmpere},
          .devices_per_node = 8,
          .link_bytes_per_second = 300e9,
          .nics = 8,
          .nic_bytes_per_second = nics_gb_per_s * 1e9};
}

}  // namespace

TEST_CASE("a node of eight A100 runs 24 channels, each on a compute unit of its own") {
  CHECK(occupied_units(a100(0), {.ranks = 8, .nodes = 1, .ranks_per_node = 8}) == 24);
  CHECK(occupied_units(a100(0), {.ranks = 1}) == 0);
}

TEST_CASE("over nodes the channels are those of the NICs, twice, and 32 at most") {
  const GroupPlacement nodes{.ranks = 32, .nodes = 4, .ranks_per_node = 8};
  const int units = occupied_units(a100(200), nodes);
  CHECK(units == 2 * nccl_graphs(a100(200), nodes).ring.count);
  CHECK(units >= 16);
  CHECK(units <= 32);
}

}  // namespace plumb::test
