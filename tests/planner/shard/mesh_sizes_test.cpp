#include "planner/shard/mesh_sizes.h"

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test { namespace {

TEST_CASE("a stage has a power of two of a node's devices, or whole nodes") {
  CHECK(mesh_sizes(round_cluster(12)) == std::vector{1, 2, 4, 8, 12});
  CHECK(mesh_sizes(round_cluster(3)) == std::vector{1, 2, 3});
  CHECK(mesh_sizes(round_cluster(1)) == std::vector{1});
}

}}  // namespace plumb::test
