#pragma once
// The shorter schedules that are tried in place of one that repeats (simulator/steady_state.h).

#include <functional>
#include <optional>

#include "schedules/schedule.h"
#include "simulator/repeated_stretch.h"

namespace plumb { inline namespace simulator {

/// A schedule that can be made for any number of micro-batches.
struct RepeatingSchedule {
  std::function<Schedule(int microbatches)> lowered;  ///< makes the schedule, lowered and valid
  int microbatches = 1;                               ///< micro-batches of the schedule to simulate
  /// Micro-batches after which its middle repeats (period_of, schedules/generators/catalogue.h), or 0 if it does not.
  int period = 0;
};

/// One try with a shorter schedule.
template <typename Answer>
struct Attempt {
  std::optional<Answer> answer;
  /// So many periods more, and the part that is left out is whole cycles.
  int missing_blocks = 0;
};

/// The part of a schedule that a shorter one of so many micro-batches leaves out: cycles, and blocks behind them.
struct SkippedPeriods {
  int cycles = 0;
  int blocks = 0;
};
inline SkippedPeriods skipped_periods(const RepeatingSchedule& repeating, int microbatches, const Cycle& cycle) {
  const int periods = (repeating.microbatches - microbatches) / repeating.period;
  const int blocks = static_cast<int>(cycle.blocks);
  return {.cycles = periods / blocks, .blocks = periods % blocks};
}

/// Returns the answer of the first attempt(microbatches) that has one, with 4 periods of the schedule, then with twice
/// as many each; nothing where they are hardly shorter than the schedule.
template <typename Answer, typename Try>
std::optional<Answer> first_answer(const RepeatingSchedule& repeating, const Try& attempt) {
  constexpr int kFirstPeriods = 4;
  const int period = repeating.period;
  const int m = repeating.microbatches;
  for (int periods = kFirstPeriods; period > 0 && 2 * periods < m / period; periods *= 2) {
    const int shorter = periods * period + m % period;
    Attempt<Answer> found = attempt(shorter);
    if (found.missing_blocks > 0) found = attempt(shorter + found.missing_blocks * period);
    if (found.answer) return std::move(found.answer);
  }
  return std::nullopt;
}

}}  // namespace plumb::simulator
