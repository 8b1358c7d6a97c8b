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
  std::map<std::pair<int, int>, std::vector<int>> seen;  // stages by lane and model part
  std::map<int, int> last_part;                          // by lane
  for (int s = 0; s < static_cast<int>(schedule.stages.size()); ++s) {
    const StagePlace& place = schedule.stages[s];
    if (place.rank < 0 || place.rank >= ranks) {
      found.report(
          -1, -1, Rule::kPlacement,
          place.rank == -1
              ? fmt::format("no rank lists an action of stage {}; list them, or number the stages from 0", s)
              : fmt::format("stage {} is on rank {} of {}; place it on one that exists", s, place.rank, ranks));
    }
    std::vector<int>& holders = seen[{place.lane, place.model_part}];
    const auto same_rank =
        std::ranges::find(holders, place.rank, [&](int other) { return schedule.stages[other].rank; });
    if (same_rank != holders.end()) {
      found.report(
          -1, -1, Rule::kPlacement,
          fmt::format("stages {} and {} are both model part {} of lane {} on rank {}; give one of them another "
                      "lane, or as a shard another rank",
                      *same_rank, s, place.model_part, place.lane, place.rank));
    }
    holders.push_back(s);
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
  const auto shards = std::ranges::find_if(seen, [](const auto& part) { return part.second.size() > 1; });
  if (last_part.size() > 1 && shards != seen.end()) {
    found.report(-1, -1, Rule::kPlacement,
                 fmt::format("model part {} of lane {} has {} shards, which schedules of one lane alone can have; give "
                             "its stages other model parts",
                             shards->first.second, shards->first.first, shards->second.size()));
  }
  if (schedule.stages.empty())
    found.report(-1, -1, Rule::kPlacement, "the schedule has no stage; list at least one forward");
  return found.take();
}

}}  // namespace plumb::schedules
