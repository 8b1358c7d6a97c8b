// What a replay on a device has measured: timelines and losses of each rank.

#include <algorithm>
#include <utility>

#include "executor/device/device_run.h"
#include "schedules/dependencies/action_table.h"

namespace plumb { inline namespace executor {

void DeviceRun::note(std::vector<RankOutcome>& ranks, const std::vector<CallTimes>& of_world_calls) {
  const std::vector<std::vector<CallTimes>> times = recorded_->times(of_world_calls);
  for (int lane = 0; lane < world_.lanes(); ++lane) {
    const std::vector<CallTimes> of_action = times_of_actions(times, lane);
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      if (!is_here(rank, lane)) continue;
      RankTimeline timeline{.memory = {{.bytes = taken_bytes(rank)}}};
      SimTime last{0};
      for (std::size_t position = 0; position < schedule_.ranks[rank].size(); ++position) {
        const Action& action = schedule_.ranks[rank][position];
        const CallTimes& own = of_action[static_cast<std::size_t>(ids_.first_id[rank]) + position];
        timeline.spans.push_back(
            {.start = own.start, .end = own.end, .action = action, .stream = stream_of(action.op)});
        last = std::max(last, own.end);
      }
      RankOutcome& of = outcome(ranks, rank, lane);
      of.timelines.push_back(std::move(timeline));
      of.ends.push_back(last);
      of.losses.emplace_back();
      of.balance_losses.emplace_back();
      of.loss_scales.push_back(loss_scale_.scale);
    }
    note_losses(ranks, lane);
  }
}

void DeviceRun::note_losses(std::vector<RankOutcome>& ranks, int lane) {
  for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage) {
    const auto rank = static_cast<std::size_t>(schedule_.stages[stage].rank);
    const DeviceStage& own = lane_stages(lane)[stage];
    if (!is_here(rank, lane)) continue;
    if (world_.place(static_cast<int>(rank), lane).tensor != 0) continue;  // its tensor ranks have the same
    const auto put = [&](std::vector<MicrobatchLoss>& losses, const std::vector<double>& sums) {
      for (std::size_t i = 0; i < sums.size(); ++i)
        if (training_.versions.version[stage][i] >= 0)
          losses.push_back({.microbatch = static_cast<int>(i), .sum = sums[i]});
    };
    if (own.ends_model()) put(outcome(ranks, rank, lane).losses.back(), own.losses(machine_));
    if (own.has_experts()) put(outcome(ranks, rank, lane).balance_losses.back(), own.balance_losses(machine_));
  }
}

std::vector<CallTimes> DeviceRun::times_of_actions(const std::vector<std::vector<CallTimes>>& times, int lane) const {
  std::vector<CallTimes> of_action(static_cast<std::size_t>(ids_.first_id.back()));
  const ActionTable table(schedule_);
  const StageNeighbors neighbors = stage_neighbors(schedule_);
  for (std::size_t call = 0; call < times.size(); ++call)
    for (std::size_t track = 0; track < times[call].size(); ++track) {
      const int of = recorded_->world().tracks[call][track].rank;
      // A rank's part of a joint step counts with the steps of its own that follow.
      for (const PlacedAction& placed : calls_[call])
        if (of == world_.rank_of(placed.rank, lane))
          of_action[static_cast<std::size_t>(placed.id)] = times[call][track];
      const Action& send = calls_[call].front().action;
      if (!is_send(send.op)) continue;
      const bool forward = send.op == Op::kSendActivation;
      const int to = (forward ? neighbors.successor : neighbors.predecessor)[static_cast<std::size_t>(send.stage)];
      const int receiver = world_.rank_of(schedule_.stages[static_cast<std::size_t>(to)].rank, lane);
      const std::int32_t receive =
          table.find(forward ? Op::kRecvActivation : Op::kRecvGradient, to, send.microbatch, send.part);
      if (receive >= 0 && receiver >= 0 && world_.track_lane(receiver) == world_.track_lane(of))
        of_action[static_cast<std::size_t>(receive)] = times[call][track];
    }
  return of_action;
}

}}  // namespace plumb::executor
