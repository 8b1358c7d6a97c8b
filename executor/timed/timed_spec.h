#pragma once
// All inputs of a replay by the timed backend.

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
  ProcessGrid grid;              ///< pipeline and data degrees; the costs include the other groups
  std::vector<double> speeds;    ///< [pipeline rank] share of normal speed; empty: all 1
  std::int64_t burst_bytes = 0;  ///< above 0: all messages of a rank leave by one card, which lets so much pass at once
  Sends sends = Sends::kBuffered;
  int steps = 1;         ///< replays of the schedule
  Seconds watchdog{60};  ///< the run fails if nothing at all moves for that long
};

/// Returns costs with the same times but fewer bytes: messages and gradients have 1/factor of their bytes (at least one
/// where there are any), over links with 1/factor of their bandwidth. Throws SpecError if the factor is below 1.
CostTable shrink_bytes(CostTable costs, double factor);

/// Return the bytes that REDUCE_GRAD of a stage sums: by [part], and of all buckets together.
std::vector<std::int64_t> bucket_bytes(const StageCosts& costs);
std::int64_t gradient_bytes(const StageCosts& costs);

/// Throws SpecError if a cost or a speed is missing, or if the gradients and messages of all ranks, which may run on
/// this machine, would take more than half of its memory.
void require_timed(const TimedSpec& spec);

/// Returns a fingerprint of schedule, grid, durations and bytes; ranks that replay together must have the same.
std::uint64_t fingerprint(const TimedSpec& spec);

}}  // namespace plumb::executor
