#include "schedules/forms/schedule_shape.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/limits.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns the key with the largest value; `keep_last` decides between equals.
template <typename Map>
typename Map::key_type most_frequent(const Map& counts, bool keep_last) {
  auto best = counts.begin();
  for (auto it = counts.begin(); it != counts.end(); ++it) {
    if (it->second > best->second || (keep_last && it->second == best->second)) best = it;
  }
  return best->first;
}

}  // namespace

void infer_shape(Schedule& schedule) {
  std::map<int, std::map<int, int>> compute_on_rank;  // stage -> rank -> actions
  std::map<int, int> forwards;                        // stage -> forwards of its first slice
  int stages = 0;
  for (int r = 0; r < static_cast<int>(schedule.ranks.size()); ++r) {
    for (const Action& action : schedule.ranks[r]) {
      if (action.stage > kLargestStage) {
        throw ScheduleError(fmt::format("rank {} lists {}: a stage above {} cannot be; mend the token", r,
                                        to_text(action), kLargestStage));
      }
      stages = std::max(stages, action.stage + 1);
      if (is_compute(action.op)) ++compute_on_rank[action.stage][r];
      if (action.op == Op::kForward && action.part == 0) ++forwards[action.stage];
    }
  }
  schedule.stages.clear();
  for (int s = 0; s < stages; ++s) {
    const auto it = compute_on_rank.find(s);
    schedule.stages.push_back(
        {.rank = it == compute_on_rank.end() ? -1 : most_frequent(it->second, false), .model_part = s});
  }
  std::map<int, int> stages_with;  // number of forwards -> stages
  for (const auto& [stage, count] : forwards) ++stages_with[count];
  schedule.microbatches = stages_with.empty() ? 0 : most_frequent(stages_with, true);
}

}}  // namespace plumb::schedules
