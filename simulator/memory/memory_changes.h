#pragma once
// Every acquisition and release of memory in a simulated step (docs/design.md, rules 5 and 6), and who holds it:
// what memory.h sums up over time and memory_holders.h at the peak.

#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/dependencies/action_table.h"
#include "schedules/schedule.h"
#include "simulator/engine/engine.h"
#include "traces/memory_kind.h"

namespace plumb { inline namespace simulator {

struct MemoryChange {
  SimTime time{0};
  std::int64_t bytes = 0;  ///< below 0: released
  MemoryKind kind = MemoryKind::kParameters;
  std::int32_t stage = 0;
  std::int32_t microbatch = kNoMicrobatch;  ///< of activations, recomputed ones, workspace, messages
  int activations = 0;                      ///< (stage, micro-batch, slice)s that come (+1) or go (-1) with it
};

/// What a RECV takes; 0 where nobody sends.
std::int64_t received_bytes(const CostTable& costs, const StageNeighbors& neighbors, const Action& receive);

/// [rank] in order of time; of one moment in list order, the state that a stage always holds first. What a backward
/// whose parts are split frees at the end of I comes off the rebuilt activations, and the rest off those that F kept.
/// `times` need no causes.
std::vector<std::vector<MemoryChange>> memory_changes(const Schedule& schedule, const ActionTable& table,
                                                      const CostTable& costs, const ActionTimes& times);

}}  // namespace plumb::simulator
