#include "schedules/process_grid.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {
namespace {
const ProcessGrid kGrid{.tensor = 2, .context = 3, .expert = 3, .data = 4, .pipeline = 2};
}

TEST_CASE("ranks and coordinates are each other's inverse") {
  for (int rank = 0; rank < world_size(kGrid); ++rank) CHECK(world_rank_of(kGrid, coordinates_of(kGrid, rank)) == rank);
}

TEST_CASE("tensor parallel ranks are neighbours, a pipeline stage is a contiguous block") {
  const ProcessGrid grid{.tensor = 2, .data = 4, .pipeline = 2};
  CHECK(group_ranks(grid, Group::kTensor, 9) == std::vector{8, 9});
  CHECK(group_ranks(grid, Group::kData, 9) == std::vector{9, 11, 13, 15});
  CHECK(group_ranks(grid, Group::kPipeline, 9) == std::vector{1, 9});
}

TEST_CASE("the groups of one kind share out the world, each rank being a member of its own") {
  for (const Group group : {Group::kTensor, Group::kContext, Group::kExpert, Group::kData, Group::kPipeline}) {
    std::multiset<int> seen;
    for (int rank = 0; rank < world_size(kGrid); ++rank) {
      const std::vector<int> members = group_ranks(kGrid, group, rank);
      CHECK(std::count(members.begin(), members.end(), rank) == 1);
      for (const int member : members) CHECK(group_ranks(kGrid, group, member) == members);
      CHECK(leads_group(kGrid, group, rank) == (members.front() == rank));
      if (members.front() == rank) seen.insert(members.begin(), members.end());
    }
    CHECK(static_cast<int>(seen.size()) == world_size(kGrid));
    CHECK(std::set<int>(seen.begin(), seen.end()).size() == seen.size());
  }
}

TEST_CASE("tensor ranks that do not share an expert are in one group of experts") {
  // Two tensor ranks and two replicas: ranks 0 to 3 of a stage have an expert each, or two pairs share one each.
  const ProcessGrid alone{.tensor = 2, .expert = 4, .expert_tensor = 1, .data = 2, .pipeline = 2};
  CHECK(group_ranks(alone, Group::kExpert, 6) == std::vector{4, 5, 6, 7});
  CHECK(expert_rank_of(alone, coordinates_of(alone, 6)) == 2);
  const ProcessGrid pairs{.tensor = 2, .expert = 2, .data = 2};
  CHECK(group_ranks(pairs, Group::kExpert, 3) == std::vector{1, 3});
  const ProcessGrid of_four{.tensor = 4, .expert = 2, .expert_tensor = 2};
  CHECK(group_ranks(of_four, Group::kExpert, 3) == std::vector{1, 3});
}

TEST_CASE("a rank outside the grid is refused") {
  CHECK_THROWS_AS(coordinates_of(kGrid, world_size(kGrid)), SpecError);
  CHECK_THROWS_AS(group_ranks(kGrid, Group::kData, -1), SpecError);
  CHECK_THROWS_AS(world_rank_of(kGrid, {.tensor = 2}), SpecError);
}

}  // namespace plumb::test
