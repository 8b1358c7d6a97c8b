#include "schedules/passes/insertions.h"
#include "schedules/passes/passes.h"

namespace plumb {

Schedule add_recompute(Schedule schedule, Checkpoint checkpoint) {
  if (checkpoint == Checkpoint::kNever) return schedule;
  const int kept = checkpoint == Checkpoint::kExceptLast ? schedule.microbatches - 1 : kNoMicrobatch;
  for (std::vector<Action>& actions : schedule.ranks) {
    std::vector<Insertion> insertions;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& a = actions[i];
      if (!gives_input_gradient(a.op) || a.microbatch == kept) continue;
      insertions.push_back(
          {.position = position_before(actions, i),
           .action = {.op = Op::kRecompute, .part = a.part, .stage = a.stage, .microbatch = a.microbatch}});
    }
    actions = with_insertions(actions, std::move(insertions));
  }
  return schedule;
}

}  // namespace plumb
