#include "simulator/repeating_times.h"

#include <algorithm>
#include <utility>

#include "simulator/engine/action_costs.h"
#include "simulator/engine/engine.h"

namespace plumb { inline namespace simulator {

RepeatingTimes::RepeatingTimes(RepeatingSchedule repeating, Sends sends)
    : repeating_(std::move(repeating)), sends_(sends) {}

TimedStep RepeatingTimes::of(const CostTable& costs) {
  auto found = first_answer<TimedStep>(repeating_, [&](int microbatches) { return attempt(microbatches, costs); });
  return found ? std::move(*found) : whole(costs);
}

std::int64_t RepeatingTimes::kept_steps() {
  const std::lock_guard reading(mutex_);
  std::int64_t steps = 0;
  for (const auto& [microbatches, compiled] : compiled_) steps += std::ssize(compiled.schedule.steps);
  return steps;
}

const RepeatingTimes::Compiled& RepeatingTimes::compiled(int microbatches) {
  const std::lock_guard writing(mutex_);
  const auto known = compiled_.find(microbatches);
  return known != compiled_.end() ? known->second
                                  : compiled_.emplace(microbatches, compile_for(microbatches)).first->second;
}

RepeatingTimes::Compiled RepeatingTimes::compile_for(int microbatches) const {
  Schedule lowered = repeating_.lowered(microbatches);
  Compiled result{.schedule = compile(lowered, sends_)};
  if (microbatches < repeating_.microbatches)
    result.stretch = stretch_of(result.schedule, compile(repeating_.lowered(microbatches + repeating_.period), sends_));
  result.stages = {.name = lowered.name, .stages = std::move(lowered.stages)};
  result.stages.ranks.resize(lowered.ranks.size());
  // Times need no names of actions.
  result.schedule.action_ids = {};
  result.schedule.send_ids = {};
  return result;
}

Attempt<TimedStep> RepeatingTimes::attempt(int microbatches, const CostTable& costs) {
  const Compiled& shorter = compiled(microbatches);
  if (!shorter.stretch) return {};
  const std::vector<StepCost> by_kind = step_costs(shorter.schedule, convert_costs(shorter.stages, costs));
  const std::vector<Moments> moments = step_moments(shorter.schedule, by_kind);
  const std::optional<Cycle> cycle = cycle_of(*shorter.stretch, moments);
  if (!cycle) return {};
  const SkippedPeriods skipped = skipped_periods(repeating_, microbatches, *cycle);
  if (skipped.blocks != 0) return {.missing_blocks = skipped.blocks};
  const Extrapolated times = extrapolate(shorter.schedule, by_kind, moments, *cycle, skipped.cycles);
  TimedStep timed{.makespan = times.makespan};
  for (const RankStatistics& rank : times.ranks) timed.busy.push_back(rank.busy);
  return {.answer = std::move(timed)};
}

TimedStep RepeatingTimes::whole(const CostTable& costs) {
  const auto& [stages, schedule, stretch] = compiled(repeating_.microbatches);
  const std::vector<StepCost> by_kind = step_costs(schedule, convert_costs(stages, costs));
  const StepTimes times = step_times(schedule, by_kind);
  TimedStep timed{.makespan = *std::ranges::max_element(times.registers),
                  .busy = std::vector<SimTime>(static_cast<std::size_t>(schedule.ranks))};
  for (std::size_t k = 0; k < schedule.kinds.size(); ++k) {
    const StepKind& kind = schedule.kinds[k];
    if (kind.occupies_rank) timed.busy[kind.rank] += kind.steps * by_kind[k].duration;
  }
  return timed;
}

}}  // namespace plumb::simulator
