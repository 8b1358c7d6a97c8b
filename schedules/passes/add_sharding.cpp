#include "schedules/passes/add_sharding.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/passes/compute_steps.h"
#include "schedules/passes/insertions.h"

namespace plumb { inline namespace schedules {
namespace {

/// Consecutive steps that use the same stages, or one OPTIMIZER_STEP.
struct Run {
  std::size_t first = 0;   // position
  std::size_t behind = 0;  // position
  std::set<int> stages;    // stages whose parameters it uses
  int stepped = -1;        // the stage of the OPTIMIZER_STEP
};

std::vector<Run> runs_of(const std::vector<Action>& actions, bool one_step_each) {
  std::vector<Run> runs;
  for (const ComputeStep& step : compute_steps(actions)) {
    Run run{.first = step.first, .behind = step.behind()};
    for (std::size_t i = step.first; i < step.behind(); ++i) {
      if (actions[i].op == Op::kOptimizerStep)
        run.stepped = actions[i].stage;
      else
        run.stages.insert(actions[i].stage);
    }
    const bool continues = !one_step_each && !runs.empty() && run.stepped < 0 && runs.back().stages == run.stages;
    if (continues)
      runs.back().behind = run.behind;
    else
      runs.push_back(run);
  }
  return runs;
}

/// A stage stands gathered from run `first` to run `last`.
struct Gathered {
  int stage = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Returns the next run behind `run` that uses the stage, or the largest number if there is none.
std::size_t next_use(const std::vector<Run>& runs, std::size_t run, int stage) {
  while (++run < runs.size())
    if (runs[run].stages.contains(stage)) return run;
  return std::numeric_limits<std::size_t>::max();
}

/// Returns the intervals in the order in which they begin. Those that begin together are ordered by model part, so that
/// ranks with copies agree.
std::vector<Gathered> gathered_intervals(const std::vector<Run>& runs, const std::vector<StagePlace>& stages,
                                         std::size_t allowed) {
  std::vector<Gathered> intervals;
  std::map<int, Gathered> open;
  const auto close = [&](int stage) {
    intervals.push_back(open.at(stage));
    open.erase(stage);
  };
  for (std::size_t k = 0; k < runs.size(); ++k) {
    const Run& run = runs[k];
    if (run.stepped >= 0 && open.contains(run.stepped)) close(run.stepped);
    for (const int stage : run.stages)
      open.try_emplace(stage, Gathered{.stage = stage, .first = k}).first->second.last = k;
    while (open.size() > std::max(allowed, run.stages.size())) {
      int victim = -1;
      for (const auto& [stage, interval] : open) {
        if (run.stages.contains(stage)) continue;
        if (victim < 0 || next_use(runs, k, stage) > next_use(runs, k, victim)) victim = stage;
      }
      close(victim);
    }
    if (allowed == 0)
      for (const int stage : run.stages) close(stage);
  }
  while (!open.empty()) close(open.begin()->first);
  std::ranges::sort(intervals, {}, [&](const Gathered& g) {
    return std::tuple(g.first, stages[static_cast<std::size_t>(g.stage)].model_part, g.stage);
  });
  return intervals;
}

/// Moves each interval's start one run ahead where that may be: not across the OPTIMIZER_STEP of the stage, whose new
/// weights are to be gathered.
std::vector<Gathered> prefetched(const std::vector<Run>& runs, std::vector<Gathered> intervals) {
  std::map<int, std::size_t> open;  // by stage: its last interval in the result
  std::vector<Gathered> result;
  for (Gathered interval : intervals) {
    if (interval.first > 0 && runs[interval.first - 1].stepped != interval.stage) --interval.first;
    const auto before = open.find(interval.stage);
    if (before != open.end() && result[before->second].last + 1 >= interval.first) {
      result[before->second].last = interval.last;
      continue;
    }
    open[interval.stage] = result.size();
    result.push_back(interval);
  }
  return result;
}

std::vector<Action> with_sharding(const std::vector<Action>& actions, const std::vector<StagePlace>& stages,
                                  const Sharding& sharding) {
  const auto allowed = static_cast<std::size_t>(sharding.gathered_stages);
  const std::vector<Run> runs = runs_of(actions, allowed == 0);
  std::vector<Gathered> intervals = gathered_intervals(runs, stages, allowed);
  if (sharding.prefetch) intervals = prefetched(runs, std::move(intervals));

  std::vector<Insertion> drops;
  std::vector<Insertion> gathers;
  for (const Gathered& interval : intervals) {
    const auto insert = [&interval](std::vector<Insertion>& to, std::size_t position, Op op) {
      to.push_back({.position = position, .action = {.op = op, .stage = interval.stage}});
    };
    const std::size_t first = runs[interval.first].first, behind = runs[interval.last].behind;
    insert(gathers, first, Op::kUnshard);
    insert(drops, behind, Op::kReshard);
    const bool has_gradients = std::any_of(
        actions.begin() + static_cast<std::ptrdiff_t>(first), actions.begin() + static_cast<std::ptrdiff_t>(behind),
        [&](const Action& a) { return a.stage == interval.stage && gives_weight_gradient(a.op); });
    if (has_gradients) insert(drops, behind, Op::kReduceGrad);
  }
  drops.insert(drops.end(), gathers.begin(), gathers.end());
  return with_insertions(actions, std::move(drops));
}

}  // namespace

Schedule add_sharding(Schedule schedule, const Sharding& sharding) {
  if (sharding.gathered_stages < 0)
    throw ScheduleError(fmt::format("{} stages cannot stand gathered: give 0 or more", sharding.gathered_stages));
  if (sharding.prefetch && sharding.gathered_stages == 0)
    throw ScheduleError(
        "parameters that each action gathers for itself cannot be prefetched: let 1 stage stand gathered");
  for (std::vector<Action>& actions : schedule.ranks) actions = with_sharding(actions, schedule.stages, sharding);
  return schedule;
}

}}  // namespace plumb::schedules
