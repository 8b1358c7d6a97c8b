#include "schedules/dependencies/shards.h"

#include <map>
#include <utility>

namespace plumb { inline namespace schedules {
namespace {

using StagesByPart = std::map<std::pair<int, int>, std::vector<int>>;  // (lane, model part)

StagesByPart stages_by_part(const Schedule& schedule) {
  StagesByPart by_part;
  for (int s = 0; s < static_cast<int>(schedule.stages.size()); ++s)
    by_part[{schedule.stages[s].lane, schedule.stages[s].model_part}].push_back(s);
  return by_part;
}

}  // namespace

bool has_shards(const Schedule& schedule) {
  return stages_by_part(schedule).size() < schedule.stages.size();
}

Shards shards_of(const Schedule& schedule) {
  const StagesByPart by_part = stages_by_part(schedule);
  Shards shards;
  if (by_part.size() == schedule.stages.size()) return shards;
  for (int s = 0; s < static_cast<int>(schedule.stages.size()); ++s) {
    const StagePlace& place = schedule.stages[s];
    const std::vector<int>& own = by_part.at({place.lane, place.model_part});
    const auto across = [&](int model_part) {
      const auto found = by_part.find({place.lane, model_part});
      const bool is_exchange = found != by_part.end() && (own.size() > 1 || found->second.size() > 1);
      return is_exchange ? found->second : std::vector<int>{};
    };
    shards.before.push_back(across(place.model_part - 1));
    shards.behind.push_back(across(place.model_part + 1));
    shards.siblings.push_back(own);
    std::erase(shards.siblings.back(), s);
  }
  return shards;
}

}}  // namespace plumb::schedules
