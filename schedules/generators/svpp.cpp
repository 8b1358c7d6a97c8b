#include <algorithm>

#include "schedules/generators/generators.h"
#include "schedules/generators/groups.h"
#include "schedules/generators/phases.h"
#include "schedules/generators/slices.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns the actions in turns of chunks, each cut into slices: they ascend in forwards and descend in backwards.
std::vector<Action> in_slices(const std::vector<Action>& actions, int slices) {
  std::vector<Action> cut;
  for (Action action : actions) {
    for (int k = 0; k < slices; ++k) {
      action.part = static_cast<std::int16_t>(action.op == Op::kForward ? k : slices - 1 - k);
      cut.push_back(action);
    }
  }
  return cut;
}

}  // namespace

Schedule svpp_schedule(const ScheduleParameters& parameters) {
  require_numbered_slices("svpp", parameters.slices);
  const int p = parameters.ranks;
  const int v = parameters.chunks;
  const int k = parameters.slices;
  // A group has at least p slices, so that the ranks have work until the first slice comes back to a chunk's next turn.
  const std::vector<int> groups = group_sizes(parameters.microbatches, (p + k - 1) / k);
  Schedule schedule{.name = "svpp", .microbatches = parameters.microbatches, .stages = loop_placement(p, p * v)};
  for (int r = 0; r < p; ++r) {
    const std::vector<int> stages = looped_stages(r, p, v);
    // The last rank must have all slices of the first micro-batch in its last chunk before it goes back with the last.
    const int warmup = (p - 1 - r) + (v - 1) * groups.front() * k + (k - 1);
    schedule.ranks.push_back(one_forward_one_backward(
        in_slices(turns_of_chunks(Op::kForward, stages, groups), k),
        in_slices(turns_of_chunks(Op::kBackward, {stages.rbegin(), stages.rend()}, groups), k), warmup));
  }
  return schedule;
}

}}  // namespace plumb::schedules
