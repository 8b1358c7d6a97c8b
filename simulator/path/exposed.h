#pragma once
// Where each rank's time goes: computing, and what communication takes that nothing hides, by cause.
//
// Of an action's time its segments tell (schedules/cost_table.h): collectives that block it count in full, one beside
// the computing only as far as it outlasts that. Of the time in which a rank does not compute traces/idle_causes.h
// tells; ahead of its first compute action its own UNSHARD does, and behind its last one its collectives and moves.

#include <array>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "simulator/path/critical_path.h"
#include "traces/idle_causes.h"
#include "traces/timeline.h"

namespace plumb { inline namespace simulator {

struct ExposedTime {
  SimTime computing{0};
  std::array<SimTime, kGroupCount> collectives{};  ///< [group] inside actions: TP, CP, EP, and sums of tied weights
  SimTime messages{0};                             ///< a message is made, but waits for its link or is on its way
  SimTime gathers{0};                              ///< UNSHARD
  SimTime reductions{0};                           ///< REDUCE_GRAD
  SimTime moves{0};                                ///< OFFLOAD, RELOAD, EVICT, LOAD
  SimTime waiting{0};                              ///< all other idle time: for other ranks, and before and behind
};

/// All of it.
SimTime total(const ExposedTime& time);

/// [rank] of a simulation under `costs`; each adds up to the makespan, exactly. The actions of a slow rank, and those
/// slowed down by collectives, are divided as their costs are. `idle` is idle_by_cause(predicted).
std::vector<ExposedTime> exposed_by_rank(const CostTable& costs, const Timeline& predicted,
                                         const std::vector<IdleByCause>& idle);

/// [rank] what of the makespan the critical path spends on each rank, a message on the rank that sends it: together
/// they are the makespan, exactly. Nothing is `waiting` on the path.
std::vector<ExposedTime> exposed_on_path(const Schedule& lowered, const CostTable& costs,
                                         const std::vector<CriticalStep>& path);

}}  // namespace plumb::simulator
