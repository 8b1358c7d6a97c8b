#include "executor/program/replay_groups.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace plumb { inline namespace executor {
namespace {

/// Returns the ranks with a copy of a model part at the place's tensor coordinate: replicas, then context ranks, then
/// lanes.
std::vector<int> ranks_of_copies(const ReplayPlan& plan, const GridCoordinates& place, int model_part) {
  std::vector<int> ranks;
  GridCoordinates member = place;
  for (member.data = 0; member.data < mesh_of(plan.grid, place.pipeline).data; ++member.data)
    for (member.context = 0; member.context < plan.grid.grid.context; ++member.context)
      for (const StagePlace& copy : plan.schedule.stages) {
        if (copy.model_part != model_part) continue;
        member.pipeline = copy.rank;
        ranks.push_back(world_rank_of(plan.grid, member));
      }
  return ranks;
}

/// Returns how many neighbouring ones of the `copies` of a model part share state.
std::size_t sharing_copies(const ReplayPlan& plan, int model_part, std::size_t copies) {
  if (plan.policy.shard == 0) return copies;
  const auto lanes = std::ranges::count(plan.schedule.stages, model_part, &StagePlace::model_part);
  return static_cast<std::size_t>(plan.policy.shard * lanes);
}

/// The groups of a rank among the copies of one model part; a group of one has no ranks.
struct CopyGroups {
  CommunicatorGroup sharing, same_experts, same_shares;
};

CopyGroups groups_of_copies(const ReplayPlan& plan, const GridCoordinates& place, int model_part) {
  const ProcessGrid& grid = plan.grid.grid;
  const std::vector<int> all = ranks_of_copies(plan, place, model_part);
  const auto found = std::ranges::find(all, world_rank_of(plan.grid, place));
  const auto own = static_cast<std::size_t>(found - all.begin());
  const std::size_t sharing = sharing_copies(plan, model_part, all.size());
  CopyGroups groups{.sharing = {.name = fmt::format("gradients of model part {}", model_part)},
                    .same_experts = {.name = fmt::format("gradients of experts of model part {}", model_part)},
                    .same_shares = {.name = fmt::format("shares of model part {}", model_part)}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % sharing == own % sharing) groups.same_shares.ranks.push_back(all[i]);
    if (i / sharing != own / sharing) continue;
    groups.sharing.ranks.push_back(all[i]);
    if (grid.expert == 1 || expert_rank_of(grid, coordinates_of(plan.grid, all[i])) == expert_rank_of(grid, place))
      groups.same_experts.ranks.push_back(all[i]);
  }
  for (CommunicatorGroup* group : {&groups.sharing, &groups.same_experts, &groups.same_shares})
    if (group->ranks.size() == 1) *group = {};
  return groups;
}

}  // namespace

CommunicatorGroup everyone_of(const RankGrid& grid) {
  CommunicatorGroup group{.name = "all ranks", .ranks = std::vector<int>(static_cast<std::size_t>(world_size(grid)))};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

ReplayGroupRanks replay_group_ranks(const ReplayPlan& plan, const GridCoordinates& place) {
  const RankGrid& grid = plan.grid;
  const std::vector<StagePlace>& stages = plan.schedule.stages;
  const auto ranks_of = [&](const std::vector<int>& pipeline_ranks) {
    std::vector<int> ranks;
    for (int other = 0; other < world_size(grid); ++other)
      if (std::ranges::find(pipeline_ranks, coordinates_of(grid, other).pipeline) != pipeline_ranks.end())
        ranks.push_back(other);
    return ranks;
  };
  ReplayGroupRanks groups{.copies = std::vector<CommunicatorGroup>(stages.size()),
                          .expert_copies = std::vector<CommunicatorGroup>(stages.size()),
                          .same_shares = std::vector<CommunicatorGroup>(stages.size()),
                          .tied = std::vector<CommunicatorGroup>(plan.tied.size())};
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    if (stages[stage].rank != place.pipeline) continue;
    CopyGroups of_stage = groups_of_copies(plan, place, stages[stage].model_part);
    groups.copies[stage] = std::move(of_stage.sharing);
    groups.expert_copies[stage] = std::move(of_stage.same_experts);
    groups.same_shares[stage] = std::move(of_stage.same_shares);
  }
  for (std::size_t pair = 0; pair < plan.tied.size(); ++pair) {
    const int embedding = stages[static_cast<std::size_t>(plan.tied[pair].embedding)].rank;
    const int head = stages[static_cast<std::size_t>(plan.tied[pair].head)].rank;
    if (mesh_of(grid, embedding) != mesh_of(grid, head)) {
      if (place.pipeline == embedding || place.pipeline == head)
        groups.tied[pair] = {fmt::format("tied tables {}", pair), ranks_of({embedding, head})};
      continue;
    }
    GridCoordinates first = place, last = place;
    first.pipeline = embedding;
    last.pipeline = head;
    if (first == last || (first != place && last != place)) continue;
    groups.tied[pair] = {fmt::format("tied tables {}", pair), {world_rank_of(grid, first), world_rank_of(grid, last)}};
  }
  return groups;
}

ReplayGroups connect_groups(const ReplayPlan& plan, Transport& transport, const GridCoordinates& place,
                            const Clock& clock) {
  const int rank = world_rank_of(plan.grid, place);
  const auto connect = [&](std::vector<CommunicatorGroup> groups) {
    std::vector<std::unique_ptr<Communicator>> connected(groups.size());
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (!groups[i].ranks.empty())
        connected[i] = std::make_unique<Communicator>(transport, std::move(groups[i]), rank, clock);
    return connected;
  };
  ReplayGroupRanks groups = replay_group_ranks(plan, place);
  return {.copies = connect(std::move(groups.copies)),
          .expert_copies = connect(std::move(groups.expert_copies)),
          .same_shares = connect(std::move(groups.same_shares)),
          .tied = connect(std::move(groups.tied))};
}

}}  // namespace plumb::executor
