#include "executor/program/device/device_groups.h"

#include <algorithm>
#include <string>

#include "executor/program/replay_groups.h"

namespace plumb { inline namespace executor {

DeviceGroupTable::DeviceGroupTable(const ReplayPlan& plan) {
  const RankGrid& grid = plan.grid;
  for (int rank = 0; rank < world_size(grid); ++rank) {
    const auto seat = [&](const std::string& name, const std::vector<int>& ranks) -> CommunicatorSeat {
      if (ranks.size() <= 1) return {};
      const auto member = std::ranges::find(ranks, rank) - ranks.begin();
      return {communicators_.number_of(name, ranks), static_cast<std::int32_t>(member),
              static_cast<std::int32_t>(ranks.size())};
    };
    tensor_.push_back(seat("tensor group", group_ranks(grid, Group::kTensor, rank)));
    context_.push_back(seat("context group", group_ranks(grid, Group::kContext, rank)));
    expert_.push_back(grid.grid.expert > 1 ? seat("expert group", group_ranks(grid, Group::kExpert, rank))
                                           : CommunicatorSeat{});
    const ReplayGroupRanks groups = replay_group_ranks(plan, coordinates_of(grid, rank));
    const auto of_stages = [&](const std::vector<CommunicatorGroup>& all, std::vector<CommunicatorSeat>& seats) {
      for (const CommunicatorGroup& group : all) seats.push_back(seat(group.name, group.ranks));
    };
    of_stages(groups.copies, copies_.emplace_back());
    of_stages(groups.expert_copies, expert_copies_.emplace_back());
    const CommunicatorGroup everyone = everyone_of(grid);
    everyone_.push_back(plan.policy.agrees ? seat(everyone.name, everyone.ranks) : CommunicatorSeat{});
    std::vector<CommunicatorSeat>& of_pairs = tied_.emplace_back();
    for (const CommunicatorGroup& group : groups.tied) of_pairs.push_back(seat(group.name, group.ranks));
  }
}

std::int32_t DeviceGroupTable::channel(MessageKind kind, int source, int destination) {
  return communicators_.number_of(kind == MessageKind::kActivation ? "activations" : "gradients", {source, destination},
                                  true);
}

}}  // namespace plumb::executor
