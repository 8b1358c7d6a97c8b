#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/liveness.h"
#include "schedules/rules/rules.h"

namespace plumb { inline namespace schedules {

std::vector<Violation> memory_violations(const Schedule& schedule, const std::vector<int>& max_activations) {
  if (max_activations.empty()) return {};
  if (max_activations.size() != 1 && max_activations.size() != schedule.ranks.size()) {
    throw ScheduleError(fmt::format("{} memory limits for {} ranks: give one for all, or one a rank",
                                    max_activations.size(), schedule.ranks.size()));
  }
  Findings findings;
  const std::vector<RankLiveness> ranks = liveness(schedule);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const int limit = max_activations[max_activations.size() == 1 ? 0 : r];
    if (ranks[r].peak <= limit) continue;
    // Each rank has one violation, where the limit is first broken: every later one has the same cause.
    std::size_t position = 0;
    while (ranks[r].held[position] + ranks[r].guests <= limit) ++position;
    const std::string guests = ranks[r].guests == 0 ? "" : fmt::format(" ({} of them its partner's)", ranks[r].guests);
    findings.report(static_cast<int>(r), static_cast<std::int64_t>(position), Rule::kMemory,
                    fmt::format("{} takes the rank to {} activations{}, over its limit of {} (its peak is {}); list a "
                                "backward ahead of it, recompute or offload",
                                to_text(schedule.ranks[r][position]), ranks[r].held[position] + ranks[r].guests, guests,
                                limit, ranks[r].peak));
  }
  return findings.take();
}

}}  // namespace plumb::schedules
