#include "simulator/steady_state.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/compile/compiled_schedule.h"
#include "simulator/engine/action_costs.h"
#include "simulator/engine/engine.h"
#include "simulator/memory/memory.h"
#include "simulator/repeated_stretch.h"
#include "simulator/shorter_schedules.h"
#include "simulator/summary.h"

namespace plumb { inline namespace simulator {
namespace {

/// True if the cycle leaves every rank's memory as it found it.
bool keeps_memory(const CompiledSchedule& compiled, const Cycle& cycle, const std::vector<KindMemory>& kinds) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(compiled.ranks), 0);
  std::vector<int> activations(static_cast<std::size_t>(compiled.ranks), 0);
  for (std::size_t i = cycle.at; i < cycle.at + cycle.steps; ++i) {
    const KindMemory& kind = kinds[compiled.steps[i].kind];
    bytes[kind.rank] += kind.taken_bytes - kind.returned_bytes;
    activations[kind.rank] += kind.taken_activations - kind.returned_activations;
  }
  return std::ranges::all_of(bytes, [](std::int64_t b) { return b == 0; }) &&
         std::ranges::all_of(activations, [](int a) { return a == 0; });
}

Attempt<Simulation> attempt(const RepeatingSchedule& repeating, int microbatches, const CostTable& costs, Sends sends) {
  const Schedule schedule = repeating.lowered(microbatches);
  const CompiledSchedule compiled = compile(schedule, sends);
  if (!holds_in_issue_order(schedule, compiled, costs)) return {};
  const auto stretch = stretch_of(compiled, compile(repeating.lowered(microbatches + repeating.period), sends));
  if (!stretch) return {};

  const std::vector<StepCost> by_kind = step_costs(compiled, convert_costs(schedule, costs));
  const std::vector<Moments> moments = step_moments(compiled, by_kind);
  const std::optional<Cycle> cycle = cycle_of(*stretch, moments);
  if (!cycle || !keeps_memory(compiled, *cycle, memory_by_kind(schedule, compiled, costs, by_kind))) return {};
  const SkippedPeriods skipped = skipped_periods(repeating, microbatches, *cycle);
  if (skipped.blocks != 0) return {.missing_blocks = skipped.blocks};

  const Extrapolated times = extrapolate(compiled, by_kind, moments, *cycle, skipped.cycles);
  StepTimes starts;
  for (const Moments& moment : moments) starts.start.push_back(moment.start);
  Simulation simulation =
      summary_of(times.ranks, times.makespan, peaks_by_rank(schedule, compiled, costs, by_kind, starts));
  simulation.engine = "steady state";
  return {.answer = std::move(simulation)};
}

}  // namespace

Simulation simulate_repeating(const RepeatingSchedule& repeating, const CostTable& costs, Sends sends) {
  const auto found = first_answer<Simulation>(
      repeating, [&](int microbatches) { return attempt(repeating, microbatches, costs, sends); });
  if (found) return *found;
  return simulate(repeating.lowered(repeating.microbatches), costs,
                  {.sends = sends, .validate = false, .record_timeline = false});
}

}}  // namespace plumb::simulator
