#pragma once
// A lowered schedule as flat arrays in one topological order, ready to be timed under any cost table.
//
// Times live in numbered registers: when each rank is free, when each channel is free, when a message is delivered. A
// step reads two registers and writes up to three. With s the step, k its kind and R the registers:
//   start        = max(R[k.from], R[s.input])
//   R[k.to]      = start + duration(k)
//   departure    = max(R[k.to], R[k.channel])
//   R[k.channel] = departure + occupied(k)
//   R[s.output]  = departure + occupied(k) + latency(k)
// A compute action and the message sent behind it are one step, and so are the two actions of an overlapped pair. A
// REDUCE_GRAD inside its host is a step ahead of it: it starts as the host does, its duration is its bucket's offset,
// and it departs onto its channel. A step that needs more than two inputs first joins them in a register. An input from
// the step's own rank needs no register: issue is in order, so the rank is not free before the input is there.
//
// The order is that of a dry run in which ranks take turns, one compute action each: consumers follow their producers
// closely, and few registers are in use at once. It depends on the schedule alone, never on costs.

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/dependencies/dependencies.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace simulator {

using Register = std::uint32_t;
inline constexpr Register kZeroRegister = 0;    ///< always 0
inline constexpr Register kUnreadRegister = 1;  ///< takes results that nobody reads

struct Step {
  std::uint32_t kind = 0;  ///< index in CompiledSchedule::kinds
  Register input = kZeroRegister;
  Register output = kUnreadRegister;
};

/// The common properties of the steps of one kind: the same operations of the same stages, whatever the micro-batches.
struct StepKind {
  /// The actions that the step lasts for: two for an overlapped pair, none for a message or a copy.
  std::vector<Action> actions;
  bool lasts_longest = false;        ///< they are a collective of copies, which lasts as long as the longest of them
  std::array<bool, 2> recomputed{};  ///< [action] for B and I: an R of their micro-batch is listed
  bool occupies_rank = false;        ///< compute: `from` and `to` are its rank's register
  bool sends = false;
  Action send{};
  bool starts_inside = false;  ///< a REDUCE_GRAD that departs at its bucket's offset inside `host`
  Action host{};
  int rank = 0;
  Register from = kZeroRegister;
  Register to = kUnreadRegister;
  Register channel = kUnreadRegister;       ///< `to` where nothing is sent
  Reason output_reason = Reason::kMessage;  ///< the reason for which an action waits for the output
  bool passes_cause = false;                ///< a copy: its readers wait for the action that it waited for
  std::int64_t steps = 0;                   ///< number of steps of this kind
};

struct CompiledSchedule {
  Sends sends = Sends::kBuffered;
  int ranks = 0;
  Register registers = 2;  ///< number of registers; rank r is free at register rank_register(r)
  std::vector<Step> steps;
  std::vector<StepKind> kinds;
  std::vector<std::int32_t> action_ids;  ///< [step] the action that starts with it, or kNone; the first of a pair
  /// [step] the send that departs with it, or kNone; for a step that starts inside its host, the host.
  std::vector<std::int32_t> send_ids;
  std::vector<std::int64_t> first_steps;  ///< [rank] the step of its first compute action; -1 without any
};

constexpr Register rank_register(int rank) {
  return static_cast<Register>(rank) + 2;
}

/// Compiles the schedule. Throws ScheduleError if it deadlocks (the cycle is named action by action), lacks a message
/// that an action waits for, has a send without a neighbour to send to, or has actions that require_valid
/// (schedules/rules/validate.h) refuses by themselves.
CompiledSchedule compile(const Schedule& lowered, Sends sends);

}}  // namespace plumb::simulator
