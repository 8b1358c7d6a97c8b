#pragma once
// A repeating schedule that is compiled once, and timed under many costs.
//
//   RepeatingTimes times({.lowered = lowered, .microbatches = 512, .period = 8});
//   for (const CostTable& costs : tables) times.of(costs).makespan

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "simulator/compile/compiled_schedule.h"
#include "simulator/repeated_stretch.h"
#include "simulator/shorter_schedules.h"

namespace plumb { inline namespace simulator {

/// The times of a step, without its memory.
struct TimedStep {
  SimTime makespan{0};
  std::vector<SimTime> busy;  ///< [rank]
};

class RepeatingTimes {
 public:
  explicit RepeatingTimes(RepeatingSchedule repeating, Sends sends = Sends::kBuffered);

  /// Returns the times that simulate_repeating() (simulator/steady_state.h) tells, to the picosecond. Threads may ask at
  /// the same time. Throws as simulate_repeating() does.
  TimedStep of(const CostTable& costs);

  /// Returns how many compiled steps are kept.
  std::int64_t kept_steps();

 private:
  struct Compiled {
    Schedule stages;  ///< without actions
    CompiledSchedule schedule;
    std::optional<RepeatedStretch> stretch;  ///< of a shorter schedule
  };
  const Compiled& compiled(int microbatches);
  Compiled compile_for(int microbatches) const;
  Attempt<TimedStep> attempt(int microbatches, const CostTable& costs);
  TimedStep whole(const CostTable& costs);

  RepeatingSchedule repeating_;
  Sends sends_;
  std::mutex mutex_;
  std::map<int, Compiled> compiled_;  ///< [micro-batches]
};

}}  // namespace plumb::simulator
