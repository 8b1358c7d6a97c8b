#pragma once
// Every acquisition and release of memory in a simulated step (docs/design.md, rules 5 and 6), and its holder. memory.h
// sums them up over time, and memory_holders.h at the peak.

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
  std::int64_t bytes = 0;  ///< below 0 if released
  MemoryKind kind = MemoryKind::kParameters;
  std::int32_t stage = 0;
  std::int32_t microbatch = kNoMicrobatch;  ///< for activations, recomputed ones, workspace and messages
  int activations = 0;                      ///< (stage, micro-batch, slice)s that come (+1) or go (-1) with it
};

/// Returns the bytes that a RECV takes; 0 where nobody sends.
std::int64_t received_bytes(const CostTable& costs, const StageNeighbors& neighbors, const Action& receive);

/// Returns [rank] its changes in order of time. Changes of one moment are in list order, and the state that a stage
/// always holds comes first. Where a backward is split, the bytes that the end of I frees come off the rebuilt
/// activations first, and the rest off those that F kept. `times` need no causes.
std::vector<std::vector<MemoryChange>> memory_changes(const Schedule& schedule, const ActionTable& table,
                                                      const CostTable& costs, const ActionTimes& times);

}}  // namespace plumb::simulator
