#pragma once
// The engine computes when each action of a compiled schedule starts and ends, in one pass over the steps in their
// fixed order. The recurrence is in simulator/compile/compiled_schedule.h. tests/simulator/longest_path.h computes the
// same starts from the action graph and is its reference.

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/schedule.h"
#include "simulator/compile/compiled_schedule.h"
#include "simulator/engine/action_costs.h"

namespace plumb { inline namespace simulator {

/// The reason why an action did not start earlier.
struct Cause {
  std::int32_t action = ActionTable::kNone;  ///< the action that it waited for; kNone if it started at 0
  Reason reason = Reason::kIssue;
};

/// Times by action id (schedules/dependencies/dependencies.h).
struct ActionTimes {
  std::vector<SimTime> start;
  std::vector<SimTime> end;   ///< of a SEND, its delivery; of a RECV, the delivery or its issue, whichever is later
  std::vector<Cause> causes;  ///< causes; the rank's own order where several constraints allow the same start
};

/// The cost of the steps of one kind. `delivered` is the time of their message: occupation of the channel and latency.
struct StepCost {
  Register from = kZeroRegister;
  Register to = kUnreadRegister;
  Register channel = kUnreadRegister;
  SimTime duration{0};
  SimTime occupied{0};
  SimTime delivered{0};
};

/// Returns [kind] the costs. Throws SpecError if an action has no cost, or if under these costs a step would end after
/// kLatestMoment (schedules/time.h), so that the passes over the steps have nothing to check: no moment is later than
/// the sum of the durations of all steps, and where that sum is too late the recurrence is run in doubles first.
std::vector<StepCost> step_costs(const CompiledSchedule& compiled, const ActionCosts& costs);

/// Names the part of all steps' time that is longest under these costs, for refusals: "most of it B of stage 3".
std::string longest_part(const CompiledSchedule& compiled, const std::vector<StepCost>& costs);

/// The moments of one step.
template <typename Time>
struct MomentsIn {
  Time start{0};
  Time end{0};        ///< of its compute
  Time departure{0};  ///< of its message; `end` where it sends none
};
using Moments = MomentsIn<SimTime>;

/// Returns when a step may start. It takes two registers by value: std::max, which takes references, would send both
/// through memory.
template <typename Time>
inline Time start_of(const Time* registers, const Step& step, const StepCost& cost) {
  const Time free = registers[cost.from];
  const Time input = registers[step.input];
  return free < input ? input : free;
}

/// Runs a step from `start` on: the rest of the recurrence of compiled_schedule.h.
template <typename Time>
inline MomentsIn<Time> run_step(Time* registers, const Step& step, const StepCost& cost, Time start) {
  const Time end = start + cost.duration;
  registers[cost.to] = end;
  const Time channel_free = registers[cost.channel];
  const Time departure = end < channel_free ? channel_free : end;
  registers[cost.channel] = departure + cost.occupied;
  registers[step.output] = departure + cost.delivered;
  return {start, end, departure};
}

struct StepTimes {
  std::vector<SimTime> start;      ///< [step]
  std::vector<SimTime> registers;  ///< [register] at the end; the largest is the makespan
};

/// Returns the times of all steps. `reused` lends its memory to the result, for callers that time one schedule many
/// times.
StepTimes step_times(const CompiledSchedule& compiled, const std::vector<StepCost>& costs, StepTimes reused = {});

/// Returns all moments of each step, by the same pass as step_times: [step].
std::vector<Moments> step_moments(const CompiledSchedule& compiled, const std::vector<StepCost>& costs);

/// Returns the times of all actions, messages included, and their causes. `table` is the table of `lowered`, from which
/// `compiled` was made. With `bursts` [kind of step], all messages of a rank leave by one card, first in first out, and
/// as much as passes the send's link in that time passes at once after an idle time (schedules/token_bucket.h); empty
/// for no bursts. Throws SpecError if an action has no cost.
ActionTimes action_times(const Schedule& lowered, const ActionTable& table, const CompiledSchedule& compiled,
                         const ActionCosts& costs, const std::vector<SimTime>& bursts = {});

/// Returns [kind of step] the time that `burst_bytes` take on the link of its send. Throws SpecError if they are
/// negative.
std::vector<SimTime> burst_times(const Schedule& lowered, const CompiledSchedule& compiled, const CostTable& costs,
                                 std::int64_t burst_bytes);

}}  // namespace plumb::simulator
