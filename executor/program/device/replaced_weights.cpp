#include "executor/program/device/replaced_weights.h"

#include "executor/program/weight_versions.h"
#include "schedules/dependencies/dependencies.h"

namespace plumb { inline namespace executor {

std::vector<std::int32_t> weight_replacers(const Schedule& lowered) {
  std::vector<std::int32_t> replacers(static_cast<std::size_t>(action_ids(lowered).first_id.back()), -1);
  if (lowered.weights == WeightPolicy::kCurrent) return replacers;
  const WeightVersions versions = weight_versions(lowered);
  std::int32_t id = 0;
  for (const std::vector<Action>& actions : lowered.ranks) {
    std::vector<std::vector<std::int32_t>> steps(lowered.stages.size());  // [stage] its steps so far
    for (const Action& action : actions) {
      const auto stage = static_cast<std::size_t>(action.stage);
      if (action.op == Op::kOptimizerStep) {
        steps[stage].push_back(id);
      } else if (is_compute(action.op)) {
        const int version = versions.version[stage][static_cast<std::size_t>(action.microbatch)];
        if (version >= 0 && static_cast<std::size_t>(version) < steps[stage].size())
          replacers[static_cast<std::size_t>(id)] = steps[stage][static_cast<std::size_t>(version)];
      }
      ++id;
    }
  }
  return replacers;
}

}}  // namespace plumb::executor
