#include <algorithm>
#include <deque>

#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns 1F1B's actions of a rank that may keep `kept` activations, and one more while a forward runs. Backwards come
/// in the order of the forwards, so the newest activation is the one to go, and each backward makes room for the oldest
/// that is away.
std::vector<Action> with_evictions(const std::vector<Action>& actions, int kept) {
  std::vector<Action> result;
  std::deque<Action> away;
  int here = 0;
  for (const Action& action : actions) {
    result.push_back(action);
    if (action.op == Op::kForward) {
      if (++here <= kept) continue;
      away.push_back(action);
      result.push_back(compute_action(Op::kEvict, action.stage, action.microbatch));
      --here;
    } else if (away.empty()) {
      --here;
    } else {
      result.push_back(compute_action(Op::kLoad, action.stage, away.front().microbatch));
      away.pop_front();
    }
  }
  return result;
}

}  // namespace

Schedule bpipe_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  Schedule schedule = one_f_one_b_schedule(parameters);
  schedule.name = "bpipe";
  const int limit = (p + 3) / 2;
  for (int r = 0; r < p; ++r) {
    const bool holds_too_many = std::min(p - r, parameters.microbatches) > limit;
    if (holds_too_many) schedule.ranks[r] = with_evictions(schedule.ranks[r], limit - 1);
  }
  return schedule;
}

}}  // namespace plumb::schedules
