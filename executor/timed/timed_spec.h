#pragma once
// Everything that a replay by the clock needs.

#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/process_grid.h"
#include "schedules/schedule.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

struct TimedSpec {
  Schedule schedule;             ///< lowered
  CostTable costs;               ///< durations of operations, bytes of messages, links
  ProcessGrid grid;              ///< pipeline and data degrees; the costs hold what other groups do
  std::vector<double> speeds;    ///< [pipeline rank] as a share of normal; empty: all 1
  std::int64_t burst_bytes = 0;  ///< above 0: all that a rank sends leaves by one card, which lets so much pass at once
  Sends sends = Sends::kBuffered;
  int steps = 1;         ///< how many times the schedule is replayed
  Seconds watchdog{60};  ///< the run fails if nothing at all moves for that long
};

/// The same times with fewer bytes: messages and gradients of 1/factor of their bytes (at least one where there are
/// any), over links that let 1/factor of theirs through. Throws SpecError if the factor is below 1.
CostTable shrink_bytes(CostTable costs, double factor);

/// What REDUCE_GRAD of a stage sums: [part], and all buckets together.
std::vector<std::int64_t> bucket_bytes(const StageCosts& costs);
std::int64_t gradient_bytes(const StageCosts& costs);

/// Throws SpecError if a cost or a speed is missing, or if the gradients and messages of all ranks, which may run on
/// this machine, would take more than half of its memory.
void require_timed(const TimedSpec& spec);

/// Of schedule, grid, durations and bytes: ranks that replay together must have the same.
std::uint64_t fingerprint(const TimedSpec& spec);

}}  // namespace plumb::executor
