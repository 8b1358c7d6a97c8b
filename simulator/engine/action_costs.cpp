#include "simulator/engine/action_costs.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/dependencies/channels.h"
#include "schedules/error.h"
#include "schedules/phases.h"

namespace plumb { inline namespace simulator {
namespace {

SimTime occupancy(const LinkCost& link, std::int64_t bytes, int source_rank, int destination_rank) {
  if (!(link.bytes_per_second > 0)) {
    throw SpecError(fmt::format("the link from rank {} to rank {} has a bandwidth of {} bytes/s: give a positive one",
                                source_rank, destination_rank, link.bytes_per_second));
  }
  const Seconds time{static_cast<double>(bytes) / link.bytes_per_second};
  return is_simulable(time) ? to_sim_time(time)
                            : to_sim_time(time, fmt::format("a message of {} bytes from rank {} to rank {}", bytes,
                                                            source_rank, destination_rank));
}

}  // namespace

ActionCosts convert_costs(const Schedule& schedule, const CostTable& costs) {
  const int stages = static_cast<int>(schedule.stages.size());
  if (static_cast<int>(costs.stages.size()) != stages) {
    throw SpecError(
        fmt::format("the cost table has {} stages, the schedule {}: give a row for each", costs.stages.size(), stages));
  }
  for (int s = 0; s < stages; ++s) {
    const int rank = schedule.stages[s].rank;
    if (rank < 0 || rank >= static_cast<int>(schedule.ranks.size())) {
      throw ScheduleError(
          fmt::format("stage {} lies on rank {}, but the schedule has {} ranks", s, rank, schedule.ranks.size()));
    }
  }

  ActionCosts converted{.table = &costs, .stages = stages};
  for (const StagePlace& place : schedule.stages) converted.rank_of_stage.push_back(place.rank);
  converted.ranges.reserve(static_cast<std::size_t>(kOpCount) * stages);
  for (int op = 0; op < kOpCount; ++op) {
    for (int s = 0; s < stages; ++s) {
      const auto count = static_cast<std::int32_t>(costs.stages[s].segments[op].size());
      converted.ranges.push_back({.first = static_cast<std::int32_t>(converted.durations.size()), .count = count});
      for (std::int32_t part = 0; part < count; ++part) {
        const Action action{.op = static_cast<Op>(op), .part = static_cast<std::int16_t>(part), .stage = s};
        converted.durations.push_back(duration_of(costs, action));
      }
    }
  }

  for (int s = 0; s < stages; ++s) {
    std::vector<SimTime>& offsets = converted.bucket_offsets.emplace_back();
    for (const Seconds offset : costs.stages[s].bucket_offsets) {
      offsets.push_back(to_sim_time(offset, "the offset of a gradient bucket"));
      if (offsets.size() > 1 && offsets.back() < offsets[offsets.size() - 2]) {
        throw SpecError(fmt::format(
            "bucket {} of stage {} is complete before bucket {}: number the buckets in the order of completion",
            offsets.size() - 1, s, offsets.size() - 2));
      }
    }
  }

  const StageNeighbors neighbors = stage_neighbors(schedule);
  const Channels channels = channels_of(schedule, neighbors);
  const auto transfer = [&](int stage, int destination_stage, std::int64_t bytes, int channel) {
    if (destination_stage < 0) return TransferCost{};
    const int source_rank = schedule.stages[stage].rank;
    const int destination_rank = schedule.stages[destination_stage].rank;
    const LinkCost& link = link_between(costs, source_rank, destination_rank);
    return TransferCost{.occupied = occupancy(link, bytes, source_rank, destination_rank),
                        .latency = to_sim_time(link.latency, "the latency of a hop"),
                        .destination_stage = destination_stage,
                        .destination_rank = destination_rank,
                        .channel = channel};
  };
  for (int s = 0; s < stages; ++s) {
    const StageCosts& stage = costs.stages[s];
    converted.activation_transfer.push_back(
        transfer(s, neighbors.successor[s], stage.activation_message_bytes, channels.of_activations[s]));
    converted.gradient_transfer.push_back(
        transfer(s, neighbors.predecessor[s], stage.gradient_message_bytes, channels.of_gradients[s]));
  }
  converted.channels = static_cast<int>(channels.channels.size());
  return converted;
}

SimTime bucket_offset(const ActionCosts& costs, const Action& host, const Action& reduction) {
  const std::vector<SimTime>& offsets = costs.bucket_offsets[reduction.stage];
  const SimTime end = duration_of(costs, host);
  if (offsets.empty()) return end;
  if (reduction.part >= static_cast<int>(offsets.size())) {
    throw SpecError(fmt::format("{} has no offset: stage {} has offsets for {} buckets; give one for each",
                                to_text(reduction), reduction.stage, offsets.size()));
  }
  const SimTime offset = offsets[reduction.part];
  // Offset and end are sums of the same costs, but each is rounded to a picosecond in its own way.
  constexpr SimTime kRounding{1000};
  if (offset > end + kRounding) {
    throw SpecError(fmt::format("{} starts {} s into {}, which lasts {} s: give its bucket an earlier offset",
                                to_text(reduction), to_seconds(offset).count(), to_text(host),
                                to_seconds(end).count()));
  }
  return std::min(offset, end);
}

SimTime weight_latency(const ActionCosts& costs, const Action& send) {
  const LinkCost& link = link_between(*costs.table, costs.rank_of_stage[send.stage], costs.rank_of_stage[send.peer]);
  return to_sim_time(link.latency, "the latency of a hop");
}

SimTime pair_duration(const ActionCosts& costs, const Action& first, const Action& second) {
  duration_of(costs, first);  // refuses a part without a cost
  duration_of(costs, second);
  return pair_duration(*costs.table, first, second);
}

void refuse_part(const Action& action, int parts) {
  throw SpecError(
      fmt::format("{} has no cost: stage {} has costs for {} parts of {}; give one for all parts, or one each",
                  to_text(action), action.stage, parts, op_name(action.op)));
}

}}  // namespace plumb::simulator
