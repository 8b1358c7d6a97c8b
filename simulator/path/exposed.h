#pragma once
// Says where each rank's time goes: computing, and by cause the time of communication that nothing hides.
//
// The segments of an action (schedules/cost_table.h) divide its time: collectives that block it count in full, one
// beside the computing only as far as it outlasts that. traces/idle_causes.h divides the time in which a rank does not
// compute; ahead of the rank's first compute action its own UNSHARD does, and behind its last one its collectives and
// moves.

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
  /// [group] collectives inside actions: TP, CP, EP, and sums of tied weights
  std::array<SimTime, kGroupCount> collectives{};
  SimTime messages{0};    ///< time in which a message is made, but waits for its link or is on its way
  SimTime gathers{0};     ///< time of UNSHARD
  SimTime reductions{0};  ///< time of REDUCE_GRAD
  SimTime moves{0};       ///< time of OFFLOAD, RELOAD, EVICT and LOAD
  SimTime waiting{0};     ///< all other idle time: for other ranks, and before and behind
};

/// Returns the sum of all fields.
SimTime total(const ExposedTime& time);

/// Returns [rank] its times in a simulation under `costs`; each rank's add up to the makespan, exactly. The actions of
/// a slow rank, and those slowed down by collectives, are divided as their costs are. `idle` is
/// idle_by_cause(predicted).
std::vector<ExposedTime> exposed_by_rank(const CostTable& costs, const Timeline& predicted,
                                         const std::vector<IdleByCause>& idle);

/// Returns [rank] the part of the makespan that the critical path spends on each rank, a message on the rank that sends
/// it; together they are the makespan, exactly. Nothing is `waiting` on the path.
std::vector<ExposedTime> exposed_on_path(const Schedule& lowered, const CostTable& costs,
                                         const std::vector<CriticalStep>& path);

}}  // namespace plumb::simulator
