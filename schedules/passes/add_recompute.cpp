#include <algorithm>
#include <vector>

#include "schedules/passes/insertions.h"
#include "schedules/passes/passes.h"

namespace plumb { inline namespace schedules {

namespace {

/// Returns [stage] the last micro-batch that it runs forward.
std::vector<int> last_microbatches(const Schedule& schedule) {
  std::vector<int> last(schedule.stages.size(), kNoMicrobatch);
  for (const std::vector<Action>& actions : schedule.ranks)
    for (const Action& action : actions)
      if (action.op == Op::kForward) last[action.stage] = std::max<int>(last[action.stage], action.microbatch);
  return last;
}

}  // namespace

Schedule add_recompute(Schedule schedule, Checkpoint checkpoint) {
  if (checkpoint == Checkpoint::kNever) return schedule;
  const std::vector<int> last = last_microbatches(schedule);
  for (std::vector<Action>& actions : schedule.ranks) {
    std::vector<Insertion> insertions;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& a = actions[i];
      const bool is_kept = checkpoint == Checkpoint::kExceptLast && a.microbatch == last[a.stage];
      if (!gives_input_gradient(a.op) || is_kept) continue;
      insertions.push_back(
          {.position = position_before(actions, i),
           .action = {.op = Op::kRecompute, .part = a.part, .stage = a.stage, .microbatch = a.microbatch}});
    }
    actions = with_insertions(actions, std::move(insertions));
  }
  return schedule;
}

}}  // namespace plumb::schedules
