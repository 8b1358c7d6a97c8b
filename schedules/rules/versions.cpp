#include <algorithm>

#include <fmt/format.h>

#include "schedules/dependencies/lanes.h"
#include "schedules/rules/rules.h"

namespace plumb { inline namespace schedules {
namespace {

/// Counts the OPTIMIZER_STEPs of a stage ahead of an action: [stage][micro-batch].
struct StepCounts {
  std::vector<std::vector<int>> at_forward;        ///< ahead of its first F
  std::vector<std::vector<int>> at_last_gradient;  ///< ahead of its last weight gradient: the batch that it belongs to
};

StepCounts step_counts(const Schedule& schedule) {
  const std::vector<std::vector<int>> none(schedule.stages.size(),
                                           std::vector<int>(static_cast<std::size_t>(schedule.microbatches), -1));
  StepCounts counts{none, none};
  std::vector<int> steps(schedule.stages.size(), 0);
  for_each_action(schedule, [&](int, std::int64_t, const Action& a) {
    if (a.op == Op::kOptimizerStep) ++steps[a.stage];
    if (a.op == Op::kForward && counts.at_forward[a.stage][a.microbatch] < 0)
      counts.at_forward[a.stage][a.microbatch] = steps[a.stage];
    if (gives_weight_gradient(a.op)) counts.at_last_gradient[a.stage][a.microbatch] = steps[a.stage];
  });
  return counts;
}

}  // namespace

std::vector<Violation> version_violations(const RuleContext& c) {
  const WeightPolicy policy = c.schedule.weights;
  if (policy != WeightPolicy::kVerticalSync && policy != WeightPolicy::kTwoBuffered) return {};
  Findings found;
  const StepCounts counts = step_counts(c.schedule);
  const std::vector<int> first = first_stages(c.schedule);
  std::vector<int> made(c.schedule.stages.size(), 0);
  for_each_action(c.schedule, [&](int r, std::int64_t i, const Action& a) {
    if (a.op == Op::kOptimizerStep) ++made[a.stage];
    if (a.op != Op::kForward && !gives_input_gradient(a.op) && a.op != Op::kWeightGrad) return;
    const int needed = policy == WeightPolicy::kVerticalSync
                           ? counts.at_forward[first[a.stage]][a.microbatch]
                           : std::max(0, counts.at_last_gradient[a.stage][a.microbatch] - 1);
    if (needed > made[a.stage]) {
      found.report(r, i, Rule::kVersion,
                   fmt::format("{} needs version {} of its weights, but only {} are made ahead of it; put more "
                               "micro-batches before each OPTIMIZER_STEP, or choose another weight policy",
                               to_text(a), needed, made[a.stage]));
    }
  });
  return found.take();
}

}}  // namespace plumb::schedules
