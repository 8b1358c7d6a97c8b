#pragma once
// The part of a compiled schedule that repeats, and what further repetitions of it add to the times. The proof is in
// simulator/steady_state.h.
//
//   if (const auto stretch = stretch_of(compile(lowered(m), sends), compile(lowered(m + period), sends)))
//     if (const auto cycle = cycle_of(*stretch, moments)) extrapolate(compiled, costs, moments, *cycle, 1000)

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/time.h"
#include "simulator/compile/compiled_schedule.h"
#include "simulator/engine/engine.h"
#include "traces/statistics.h"

namespace plumb { inline namespace simulator {

/// Steps [begin, end) of a compiled schedule repeat with blocks of `block` steps.
struct RepeatedStretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t block = 0;
  std::size_t reach = 0;  ///< no step of it reads a register that was written more steps ago
};

/// Returns the stretch where `longer` has one more block than `shorter`, or nothing if they differ in more than that.
std::optional<RepeatedStretch> stretch_of(const CompiledSchedule& shorter, const CompiledSchedule& longer);

/// From step `at` on, the times of a stretch repeat after `steps` steps, later by `shift`.
struct Cycle {
  std::size_t at = 0;
  std::size_t steps = 0;
  std::size_t blocks = 1;
  SimTime shift{0};
};

/// Returns the cycle of [step] `moments`; nothing if they do not repeat within the stretch.
std::optional<Cycle> cycle_of(const RepeatedStretch& stretch, const std::vector<Moments>& moments);

/// The times of a schedule with more cycles.
struct Extrapolated {
  SimTime makespan{0};
  std::vector<RankStatistics> ranks;
};

/// Returns the times of a schedule with `cycles` more of that cycle. Throws SpecError if its step ends after
/// kLatestMoment (schedules/time.h).
Extrapolated extrapolate(const CompiledSchedule& compiled, const std::vector<StepCost>& costs,
                         const std::vector<Moments>& moments, const Cycle& cycle, std::int64_t cycles);

}}  // namespace plumb::simulator
