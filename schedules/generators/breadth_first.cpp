#include "schedules/generators/generators.h"
#include "schedules/generators/groups.h"

namespace plumb { inline namespace schedules {

Schedule breadth_first_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  Schedule schedule{.name = "bfs", .microbatches = m, .stages = loop_placement(p, p * parameters.chunks)};
  for (int r = 0; r < p; ++r) {
    // All micro-batches form one group: each goes through a chunk before the next chunk's turn. The backwards are the
    // mirror image.
    const std::vector<int> stages = looped_stages(r, p, parameters.chunks);
    std::vector<Action> actions = turns_of_chunks(Op::kForward, stages, {m});
    std::vector<Action> backwards = turns_of_chunks(Op::kBackward, stages, {m});
    actions.insert(actions.end(), backwards.rbegin(), backwards.rend());
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

}}  // namespace plumb::schedules
