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

TEST_CASE("ranks lie on devices stage by stage, or replica by replica") {
  // Two tensor ranks, three replicas, two stages; a replica's stages side by side.
  const ProcessGrid apart{.tensor = 2, .data = 3, .pipeline = 2, .together = 2};
  std::vector<int> devices;
  for (int rank = 0; rank < world_size(apart); ++rank) devices.push_back(device_of(apart, rank));
  CHECK(devices == std::vector{0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11});
  CHECK(devices_of(apart, group_ranks(apart, Group::kPipeline, 2)) == std::vector{4, 6});
  CHECK(devices_of(apart, group_ranks(apart, Group::kData, 7)) == std::vector{3, 7, 11});
  for (const int together : {0, 2, 6}) {
    const ProcessGrid grid{.tensor = 2, .data = 3, .pipeline = 2, .together = together};
    for (int rank = 0; rank < world_size(grid); ++rank) {
      CHECK(world_rank_on(grid, device_of(grid, rank)) == rank);
      if (together != 2) CHECK(device_of(grid, rank) == rank);
    }
  }
}

TEST_CASE("a rank outside the grid is refused") {
  CHECK_THROWS_AS(coordinates_of(kGrid, world_size(kGrid)), SpecError);
  CHECK_THROWS_AS(group_ranks(kGrid, Group::kData, -1), SpecError);
  CHECK_THROWS_AS(world_rank_of(kGrid, {.tensor = 2}), SpecError);
}

}  // namespace plumb::test
