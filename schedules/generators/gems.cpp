#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {

Schedule gems_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  if (p % 2 != 0 || m < 2) {
    throw ScheduleError(
        fmt::format("gems demands p even, m >= 2, not {} ranks and {} micro-batches: change them, or use naive", p, m));
  }
  Schedule schedule{.name = "gems", .microbatches = m, .stages = bidirectional_placement(p)};
  for (int r = 0; r < p; ++r) {
    std::vector<Action>& actions = schedule.ranks.emplace_back();
    for (int i = 0; i < m; ++i) {
      // Rank r has part r of the copy that even micro-batches run through, and part p-1-r of the other.
      const int stage = i % 2 == 0 ? r : p + (p - 1 - r);
      actions.push_back(compute_action(Op::kForward, stage, i));
      actions.push_back(compute_action(Op::kBackward, stage, i));
    }
  }
  return schedule;
}

}}  // namespace plumb::schedules
