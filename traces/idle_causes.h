#pragma once
// Why the ranks of a timeline idle, predicted or measured: every idle moment has one cause.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/timeline.h"

namespace plumb { inline namespace traces {

enum class IdleCause : std::uint8_t {
  kWarmUp,       ///< before the rank's first compute action
  kDrain,        ///< behind its last one
  kActivation,   ///< another rank has not made the activation yet
  kGradient,     ///< another rank has not made the gradient yet
  kMemoryLimit,  ///< so it is, but the rank's next forward has its input: the order bounds the activations that it
                 ///< holds
  kImbalance,    ///< of the three above, what a rank with less work than the busiest waits in any order
  kLink,         ///< the message is made, but its channel or its receiver is not ready
  kTransfer,     ///< the message is on its way
  kParameters,   ///< an UNSHARD
  kReduction,    ///< a REDUCE_GRAD
  kMove,         ///< a RELOAD or LOAD
  kOverhead,     ///< nothing that the schedule knows: all inputs are there (measured timelines)
};
inline constexpr int kIdleCauseCount = 12;

/// "warm-up", "drain", "activation", ...
std::string_view idle_cause_name(IdleCause cause);

using IdleByCause = std::array<SimTime, kIdleCauseCount>;  ///< [cause]

/// [rank] idle time by cause. For every rank, busy time (traces/statistics.h) and these add up to the makespan,
/// exactly. A gap is put down to the input that came last; of a message, to its making, its waiting and its way in
/// turn.
std::vector<IdleByCause> idle_by_cause(const Timeline& timeline);

/// The same for one who has schedule_of(timeline).
std::vector<IdleByCause> idle_by_cause(const Timeline& timeline, const Schedule& schedule);

}}  // namespace plumb::traces
