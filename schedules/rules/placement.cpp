#include "schedules/rules/rules.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace plumb { inline namespace schedules {

std::vector<Violation> placement_violations(const Schedule& schedule) {
  Findings found;
  const int ranks = static_cast<int>(schedule.ranks.size());
  if (schedule.microbatches < 1)
    found.report(-1, -1, Rule::kPlacement, "the schedule has no micro-batch; give it one or more");
  std::map<std::pair<int, int>, int> seen;
  std::map<int, int> last_part;  // by lane
  for (int s = 0; s < static_cast<int>(schedule.stages.size()); ++s) {
    const StagePlace& place = schedule.stages[s];
    if (place.rank < 0 || place.rank >= ranks) {
      found.report(
          -1, -1, Rule::kPlacement,
          place.rank == -1
              ? fmt::format("no rank lists an action of stage {}; list them, or number the stages from 0", s)
              : fmt::format("stage {} is on rank {} of {}; place it on one that exists", s, place.rank, ranks));
    }
    if (!seen.emplace(std::pair{place.lane, place.model_part}, s).second) {
      found.report(-1, -1, Rule::kPlacement,
                   fmt::format("stages {} and {} are both model part {} of lane {}; give one of them another lane",
                               seen[{place.lane, place.model_part}], s, place.model_part, place.lane));
    }
    last_part[place.lane] = std::max(last_part[place.lane], place.model_part);
  }
  for (const auto& [lane, last] : last_part) {
    for (int part = 0; part < last && !found.full(); ++part) {
      if (!seen.contains({lane, part})) {
        found.report(-1, -1, Rule::kPlacement,
                     fmt::format("model part {} of lane {} has no stage; give it one", part, lane));
      }
    }
  }
  if (schedule.stages.empty())
    found.report(-1, -1, Rule::kPlacement, "the schedule has no stage; list at least one forward");
  return found.take();
}

}}  // namespace plumb::schedules
