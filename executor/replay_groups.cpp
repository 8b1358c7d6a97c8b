#include "executor/replay_groups.h"

#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace plumb {

CommunicatorGroup everyone_of(const ProcessGrid& grid) {
  CommunicatorGroup group{.name = "all ranks", .ranks = std::vector<int>(static_cast<std::size_t>(world_size(grid)))};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

ReplayGroups connect_groups(const ReplayPlan& plan, Transport& transport, const GridCoordinates& place,
                            const Clock& clock) {
  const ProcessGrid& grid = plan.grid;
  const std::vector<StagePlace>& stages = plan.schedule.stages;
  const int rank = world_rank_of(grid, place);
  const auto connect = [&](std::string name, std::vector<int> ranks) {
    return std::make_unique<Communicator>(transport, CommunicatorGroup{std::move(name), std::move(ranks)}, rank, clock);
  };
  ReplayGroups groups{.copies = std::vector<std::unique_ptr<Communicator>>(stages.size()),
                      .expert_copies = std::vector<std::unique_ptr<Communicator>>(stages.size()),
                      .tied = std::vector<std::unique_ptr<Communicator>>(plan.tied.size())};
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    if (stages[stage].rank != place.pipeline) continue;
    std::vector<int> ranks, same_experts;
    GridCoordinates member = place;
    for (member.data = 0; member.data < grid.data; ++member.data)
      for (member.context = 0; member.context < grid.context; ++member.context)
        for (const StagePlace& copy : stages) {
          if (copy.model_part != stages[stage].model_part) continue;
          member.pipeline = copy.rank;
          ranks.push_back(world_rank_of(grid, member));
          if (expert_rank_of(grid, member) == expert_rank_of(grid, place)) same_experts.push_back(ranks.back());
        }
    const int part = stages[stage].model_part;
    if (ranks.size() > 1)
      groups.copies[stage] = connect(fmt::format("gradients of model part {}", part), std::move(ranks));
    if (same_experts.size() > 1)
      groups.expert_copies[stage] =
          connect(fmt::format("gradients of experts of model part {}", part), std::move(same_experts));
  }
  for (std::size_t pair = 0; pair < plan.tied.size(); ++pair) {
    GridCoordinates first = place, last = place;
    first.pipeline = stages[static_cast<std::size_t>(plan.tied[pair].embedding)].rank;
    last.pipeline = stages[static_cast<std::size_t>(plan.tied[pair].head)].rank;
    if (first == last || (first != place && last != place)) continue;
    groups.tied[pair] =
        connect(fmt::format("tied tables {}", pair), {world_rank_of(grid, first), world_rank_of(grid, last)});
  }
  return groups;
}

}  // namespace plumb
