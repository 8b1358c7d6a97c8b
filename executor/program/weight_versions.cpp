#include "executor/program/weight_versions.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "schedules/dependencies/lanes.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

using StageTable = std::vector<std::vector<int>>;  // [stage][micro-batch]

/// Refuses weights that change between a micro-batch's forward and its backward.
void require_unchanged(const StageTable& at_forward, const StageTable& batch) {
  for (std::size_t stage = 0; stage < batch.size(); ++stage)
    for (std::size_t i = 0; i < batch[stage].size(); ++i)
      if (at_forward[stage][i] >= 0 && at_forward[stage][i] != batch[stage][i])
        throw ScheduleError(
            fmt::format("the weights of stage {} change between forward and backward of micro-batch {}, and the policy "
                        "is 'current': "
                        "choose another weight policy, or move the OPTIMIZER_STEP",
                        stage, i));
}

/// Refuses versions that do not exist yet at the forward that needs them.
void require_made(const StageTable& version, const StageTable& at_forward) {
  for (std::size_t stage = 0; stage < version.size(); ++stage)
    for (std::size_t i = 0; i < version[stage].size(); ++i)
      if (version[stage][i] > at_forward[stage][i])
        throw ScheduleError(
            fmt::format("micro-batch {} needs version {} of the weights of stage {}, which has made {} at its forward: "
                        "put more micro-batches before each OPTIMIZER_STEP, or choose another weight policy",
                        i, version[stage][i], stage, at_forward[stage][i]));
}

}  // namespace

WeightVersions weight_versions(const Schedule& schedule) {
  const std::size_t stages = schedule.stages.size(), microbatches = static_cast<std::size_t>(schedule.microbatches);
  StageTable at_forward(stages, std::vector<int>(microbatches, -1));
  StageTable batch(stages, std::vector<int>(microbatches, 0));
  for (const std::vector<Action>& actions : schedule.ranks) {
    std::vector<int> steps(stages, 0);
    for (const Action& action : actions) {
      const auto stage = static_cast<std::size_t>(action.stage);
      if (action.op == Op::kOptimizerStep) ++steps[stage];
      if (action.op == Op::kForward) at_forward[stage][static_cast<std::size_t>(action.microbatch)] = steps[stage];
      if (gives_weight_gradient(action.op)) batch[stage][static_cast<std::size_t>(action.microbatch)] = steps[stage];
    }
  }
  if (schedule.weights == WeightPolicy::kCurrent) require_unchanged(at_forward, batch);

  const std::vector<int> first = first_stages(schedule);
  StageTable version = at_forward;
  for (std::size_t stage = 0; stage < stages; ++stage)
    for (std::size_t i = 0; i < microbatches; ++i) {
      if (at_forward[stage][i] < 0) continue;
      if (schedule.weights == WeightPolicy::kVerticalSync) version[stage][i] = at_forward[first[stage]][i];
      if (schedule.weights == WeightPolicy::kTwoBuffered) version[stage][i] = std::max(0, batch[stage][i] - 1);
    }
  require_made(version, at_forward);
  return {std::move(version), std::move(batch)};
}

}}  // namespace plumb::executor
