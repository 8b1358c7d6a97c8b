#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/generators/generators.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns 1F1B with an OPTIMIZER_STEP behind every `batch` backwards of a stage and behind its last.
Schedule stepping_one_f_one_b(const ScheduleParameters& parameters, int batch) {
  Schedule schedule = one_f_one_b_schedule(parameters);
  for (std::vector<Action>& actions : schedule.ranks) {
    std::vector<Action> with_steps;
    for (const Action& action : actions) {
      with_steps.push_back(action);
      const int done = action.microbatch + 1;  // backwards ascend
      if (action.op == Op::kBackward && (done % batch == 0 || done == schedule.microbatches)) {
        with_steps.push_back({.op = Op::kOptimizerStep, .stage = action.stage});
      }
    }
    actions = std::move(with_steps);
  }
  return schedule;
}

}  // namespace

Schedule pipedream_schedule(const ScheduleParameters& parameters) {
  Schedule schedule = stepping_one_f_one_b(parameters, 1);
  schedule.name = "pipedream";
  schedule.weights = parameters.vertical_sync ? WeightPolicy::kVerticalSync : WeightPolicy::kStashed;
  return schedule;
}

Schedule pipedream_2bw_schedule(const ScheduleParameters& parameters) {
  const int batch = parameters.batch == 0 ? parameters.ranks : parameters.batch;
  if (batch < parameters.ranks - 1 && batch < parameters.microbatches) {
    throw ScheduleError(
        fmt::format("pipedream-2bw with batches of {} micro-batches needs more than two weight versions on {} ranks: "
                    "give a batch of {} or more",
                    batch, parameters.ranks, parameters.ranks - 1));
  }
  Schedule schedule = stepping_one_f_one_b(parameters, batch);
  schedule.name = "pipedream-2bw";
  schedule.weights = WeightPolicy::kTwoBuffered;
  return schedule;
}

}}  // namespace plumb::schedules
