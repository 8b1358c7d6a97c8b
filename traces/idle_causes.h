#pragma once
// Says why the ranks of a timeline idle, predicted or measured: every idle moment has one cause.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/timeline.h"

namespace plumb { inline namespace traces {

enum class IdleCause : std::uint8_t {
  kWarmUp,      ///< before the rank's first compute action
  kDrain,       ///< behind its last one
  kActivation,  ///< another rank has not made the activation yet
  kGradient,    ///< another rank has not made the gradient yet
  /// Either of these two, but the rank's next forward has its input: the order bounds the activations that it holds.
  kMemoryLimit,
  /// The part of the three above that a rank with less work than the busiest waits in any order.
  kImbalance,
  kLink,        ///< the message is made, but its channel or its receiver is not ready
  kTransfer,    ///< the message is on its way
  kParameters,  ///< an UNSHARD has not ended
  kReduction,   ///< a REDUCE_GRAD has not ended
  kMove,        ///< a RELOAD or LOAD has not ended
  kOverhead,    ///< nothing that the schedule knows: all inputs are there (measured timelines)
};
inline constexpr int kIdleCauseCount = 12;

/// Returns "warm-up", "drain", "activation", ...
std::string_view idle_cause_name(IdleCause cause);

using IdleByCause = std::array<SimTime, kIdleCauseCount>;  ///< [cause]

/// Returns [rank] its idle time by cause. For every rank, busy time (traces/statistics.h) and these add up to the
/// makespan, exactly. A gap is put down to the input that came last; if that is a message, to its making, its waiting
/// and its way in turn.
std::vector<IdleByCause> idle_by_cause(const Timeline& timeline);

/// This form is for a caller that has schedule_of(timeline).
std::vector<IdleByCause> idle_by_cause(const Timeline& timeline, const Schedule& schedule);

}}  // namespace plumb::traces
