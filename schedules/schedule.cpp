#include "schedules/schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "schedules/weight_holders.h"

namespace plumb { inline namespace schedules {

StageNeighbors stage_neighbors(const Schedule& schedule) {
  const int stages = static_cast<int>(schedule.stages.size());
  constexpr int kShared = -2;                   // several stages: shards
  std::map<std::pair<int, int>, int> stage_at;  // (lane, model part)
  for (int s = 0; s < stages; ++s) {
    const auto [at, is_first] = stage_at.emplace(std::pair{schedule.stages[s].lane, schedule.stages[s].model_part}, s);
    if (!is_first) at->second = kShared;
  }

  const auto find = [&](const StagePlace& place, int step) {
    const auto it = stage_at.find({place.lane, place.model_part + step});
    const bool exchanges = stage_at.at({place.lane, place.model_part}) == kShared;
    return it == stage_at.end() || it->second == kShared || exchanges ? -1 : it->second;
  };
  StageNeighbors neighbors;
  for (const StagePlace& place : schedule.stages) {
    neighbors.predecessor.push_back(find(place, -1));
    neighbors.successor.push_back(find(place, 1));
  }
  return neighbors;
}

std::vector<bool> stages_with_copies(const Schedule& schedule) {
  struct Holders {
    std::set<int> lanes, ranks;
  };
  std::map<int, Holders> of_part;
  for (const StagePlace& place : schedule.stages) {
    of_part[place.model_part].lanes.insert(place.lane);
    of_part[place.model_part].ranks.insert(place.rank);
  }
  const std::vector<int> weights = weight_holders(schedule);
  std::vector<bool> copied;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    const Holders& holders = of_part[schedule.stages[s].model_part];
    copied.push_back(weights[s] >= 0 && holders.lanes.size() > 1 && holders.ranks.size() > 1);
  }
  return copied;
}

bool has_copies(const Schedule& schedule) {
  return std::ranges::count(stages_with_copies(schedule), true) > 0;
}

bool has_messages(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& action) { return is_message(action.op); });
  });
}

bool is_asynchronous(const Schedule& schedule) {
  return schedule.weights != WeightPolicy::kCurrent;
}

std::int64_t action_count(const Schedule& schedule) {
  std::int64_t count = 0;
  for (const auto& actions : schedule.ranks) count += static_cast<std::int64_t>(actions.size());
  return count;
}

std::string_view policy_name(WeightPolicy policy) {
  switch (policy) {
    case WeightPolicy::kCurrent:
      return "current";
    case WeightPolicy::kStashed:
      return "stashed";
    case WeightPolicy::kVerticalSync:
      return "vertical_sync";
    case WeightPolicy::kTwoBuffered:
      return "two_buffered";
  }
  return "?";
}

std::optional<WeightPolicy> policy_from_name(std::string_view name) {
  for (const auto policy :
       {WeightPolicy::kCurrent, WeightPolicy::kStashed, WeightPolicy::kVerticalSync, WeightPolicy::kTwoBuffered}) {
    if (policy_name(policy) == name) return policy;
  }
  return std::nullopt;
}

std::vector<StagePlace> loop_placement(int ranks, int stages) {
  std::vector<StagePlace> places(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) places[s] = {.rank = s % ranks, .model_part = s};
  return places;
}

std::vector<StagePlace> snake_placement(int ranks, int stages) {
  std::vector<StagePlace> places(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    const int along = s % ranks;
    places[s] = {.rank = (s / ranks) % 2 == 0 ? along : ranks - 1 - along, .model_part = s};
  }
  return places;
}

std::vector<StagePlace> bidirectional_placement(int ranks) {
  std::vector<StagePlace> places;
  for (int s = 0; s < ranks; ++s) places.push_back({.rank = s, .model_part = s, .lane = 0});
  for (int s = 0; s < ranks; ++s) places.push_back({.rank = ranks - 1 - s, .model_part = s, .lane = 1});
  return places;
}

}}  // namespace plumb::schedules
