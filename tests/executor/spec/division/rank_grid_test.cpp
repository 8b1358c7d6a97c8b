#include "executor/spec/division/rank_grid.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {

TEST_CASE("ranks of meshes that are all alike are numbered as the process grid's") {
  const ProcessGrid grid{.tensor = 2, .context = 2, .data = 3, .pipeline = 2};
  const RankGrid ranks(grid);
  REQUIRE(world_size(ranks) == world_size(grid));
  for (int rank = 0; rank < world_size(grid); ++rank) {
    CHECK(coordinates_of(ranks, rank) == coordinates_of(grid, rank));
    CHECK(world_rank_of(ranks, coordinates_of(grid, rank)) == rank);
    for (const Group group : {Group::kTensor, Group::kContext, Group::kData})
      CHECK(group_ranks(ranks, group, rank) == group_ranks(grid, group, rank));
  }
}

TEST_CASE("a pipeline rank of two tensor ranks, then one of three replicas, are ranks 0 to 4") {
  const RankGrid ranks({.pipeline = 2}, {{.tensor = 2}, {.data = 3}});
  CHECK(world_size(ranks) == 5);
  CHECK(coordinates_of(ranks, 1) == GridCoordinates{.tensor = 1});
  CHECK(coordinates_of(ranks, 4) == GridCoordinates{.data = 2, .pipeline = 1});
  CHECK(world_rank_of(ranks, {.data = 1, .pipeline = 1}) == 3);
  CHECK(group_ranks(ranks, Group::kTensor, 0) == std::vector<int>{0, 1});
  CHECK(group_ranks(ranks, Group::kData, 0) == std::vector<int>{0});
  CHECK(group_ranks(ranks, Group::kData, 3) == std::vector<int>{2, 3, 4});
  CHECK(parts_of_microbatch(ranks, 0) == 1);
  CHECK(parts_of_microbatch(ranks, 1) == 3);
}

TEST_CASE("ranks and coordinates outside a mesh are refused") {
  const RankGrid ranks({.pipeline = 2}, {{.tensor = 2}, {.data = 2}});
  CHECK_THROWS_AS(coordinates_of(ranks, 4), SpecError);
  CHECK_THROWS_AS(world_rank_of(ranks, {.tensor = 1, .pipeline = 1}), SpecError);
  CHECK_THROWS_AS(world_rank_of(ranks, {.data = 1, .pipeline = 0}), SpecError);
  CHECK_THROWS_AS(world_rank_of(ranks, {.pipeline = 2}), SpecError);
}

}  // namespace plumb::test
