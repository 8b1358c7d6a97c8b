#pragma once
// Every cost that a schedule's actions can have, converted once to integer time. The engine, the action graph's delays
// and the tests' longest path share these, so that they differ in the rules they follow and never in rounding.

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "schedules/time.h"

namespace plumb { inline namespace simulator {

/// The cost of a SEND_F or SEND_B of one stage, and its destination.
struct TransferCost {
  SimTime occupied{0};         ///< time on the channel: bytes / bandwidth
  SimTime latency{0};          ///< time from the last byte's departure to delivery
  int destination_stage = -1;  ///< -1 if the stage has no neighbour that way
  int destination_rank = -1;
  int channel = -1;  ///< schedules/dependencies/channels.h
};

struct ActionCosts {
  const CostTable* table = nullptr;  ///< the table that was converted, which outlives this
  /// The durations of (op, stage): a single entry serves every part, none costs nothing.
  struct Range {
    std::int32_t first = 0;
    std::int32_t count = 0;
  };
  int stages = 0;
  std::vector<int> rank_of_stage;  ///< [stage]
  std::vector<Range> ranges;       ///< [op * stages + stage]
  std::vector<SimTime> durations;
  std::vector<std::vector<SimTime>> bucket_offsets;  ///< [stage][part of REDUCE_GRAD]
  std::vector<TransferCost> activation_transfer;     ///< [producing stage] for SEND_F
  std::vector<TransferCost> gradient_transfer;       ///< [producing stage] for SEND_B
  int channels = 0;
};

/// Converts the table. Throws SpecError if it has not a row for each stage, if a cost is negative or not finite, or if
/// a link has no bandwidth; throws ScheduleError if a stage lies on a rank that the schedule has not.
ActionCosts convert_costs(const Schedule& schedule, const CostTable& costs);
ActionCosts convert_costs(const Schedule&, CostTable&&) = delete;  // the table outlives the result

/// Returns when the bucket of `reduction` is complete, from the start of `host`, the last B or W of its stage: as the
/// table says, or at the end of the host where it says nothing. Throws SpecError if the table has buckets, but not that
/// one, or says a moment behind the end of the host.
SimTime bucket_offset(const ActionCosts& costs, const Action& host, const Action& reduction);

/// Returns the cost of a send.
inline const TransferCost& transfer_of(const ActionCosts& costs, const Action& send) {
  return (send.op == Op::kSendActivation ? costs.activation_transfer : costs.gradient_transfer)[send.stage];
}

/// Returns the time from the end of a SEND_WEIGHTS or SEND_WGRAD, whose duration is that on its channel, to delivery.
SimTime weight_latency(const ActionCosts& costs, const Action& send);

/// Throws the SpecError of duration_of.
[[noreturn]] void refuse_part(const Action& action, int parts);

/// Returns the duration of an action by itself, without waiting. Throws SpecError if the costs have parts, but not that
/// one.
inline SimTime duration_of(const ActionCosts& costs, const Action& action) {
  const ActionCosts::Range range = costs.ranges[static_cast<std::size_t>(action.op) * costs.stages + action.stage];
  if (range.count == 1) return costs.durations[range.first];
  if (range.count == 0) return SimTime{0};
  if (action.part >= range.count) refuse_part(action, range.count);
  return costs.durations[range.first + action.part];
}

/// Returns how long two actions last together as an overlapped pair (schedules/phases.h). Throws as for one action.
SimTime pair_duration(const ActionCosts& costs, const Action& first, const Action& second);

}}  // namespace plumb::simulator
