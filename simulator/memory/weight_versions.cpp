#include "simulator/memory/weight_versions.h"

#include <algorithm>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/lanes.h"

namespace plumb { inline namespace simulator {
namespace {

/// Ids of one stage's actions that make or use weights, in list order.
struct StageEvents {
  std::vector<std::int32_t> steps;          ///< OPTIMIZER_STEPs
  std::vector<std::int32_t> forward;        ///< [micro-batch] its first F, or kNone
  std::vector<std::int32_t> last_backward;  ///< [micro-batch] its last B, I or W, or kNone
};

std::vector<StageEvents> events_by_stage(const Schedule& schedule) {
  std::vector<StageEvents> events(schedule.stages.size());
  for (StageEvents& stage : events) {
    stage.forward.assign(static_cast<std::size_t>(schedule.microbatches), ActionTable::kNone);
    stage.last_backward = stage.forward;
  }
  std::int32_t id = 0;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      StageEvents& stage = events[action.stage];
      if (action.op == Op::kOptimizerStep) stage.steps.push_back(id);
      if (action.op == Op::kForward && stage.forward[action.microbatch] == ActionTable::kNone) {
        stage.forward[action.microbatch] = id;
      }
      if (action.op == Op::kBackward || action.op == Op::kInputGrad || action.op == Op::kWeightGrad) {
        stage.last_backward[action.microbatch] = id;
      }
      ++id;
    }
  }
  return events;
}

/// Returns a stage's version when the action `id` of its rank runs.
int version_at(const StageEvents& stage, std::int32_t id) {
  return static_cast<int>(std::ranges::lower_bound(stage.steps, id) - stage.steps.begin());
}

}  // namespace

std::vector<std::vector<ExtraVersion>> extra_versions(const Schedule& schedule) {
  std::vector<std::vector<ExtraVersion>> extra(schedule.stages.size());
  if (schedule.weights == WeightPolicy::kCurrent) return extra;

  const std::vector<StageEvents> events = events_by_stage(schedule);
  const std::vector<int> first_stage = first_stages(schedule);
  for (std::size_t s = 0; s < events.size(); ++s) {
    const StageEvents& stage = events[s];
    std::vector<std::int32_t> last_use(stage.steps.size() + 1, ActionTable::kNone);
    for (int m = 0; m < schedule.microbatches; ++m) {
      const std::int32_t forward = stage.forward[m];
      const std::int32_t backward = stage.last_backward[m];
      if (forward == ActionTable::kNone || backward == ActionTable::kNone) continue;
      int version = version_at(stage, forward);
      if (schedule.weights == WeightPolicy::kVerticalSync) {
        const StageEvents& entry = events[first_stage[s]];
        version = std::min(version, version_at(entry, entry.forward[m]));
      }
      if (schedule.weights == WeightPolicy::kTwoBuffered) version = std::max(0, version_at(stage, backward) - 1);
      last_use[version] = std::max(last_use[version], backward);
    }
    for (std::size_t v = 0; v < stage.steps.size(); ++v) {
      if (last_use[v] > stage.steps[v]) extra[s].push_back({.born = stage.steps[v], .dies = last_use[v]});
    }
  }
  return extra;
}

}}  // namespace plumb::simulator
