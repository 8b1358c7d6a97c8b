#include "executor/training/device/replay_outcome.h"

#include <algorithm>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/dependencies.h"

namespace plumb { inline namespace executor {
namespace {

/// [action id] the times of a lane's actions; a RECV has the times of its message's copy. times: [call][track]
std::vector<CallTimes> times_of_actions(const ReplayInputs& in, const std::vector<std::vector<CallTimes>>& times,
                                        int lane) {
  const Schedule& schedule = in.training.replay.schedule;
  std::vector<CallTimes> of_action(static_cast<std::size_t>(action_ids(schedule).first_id.back()));
  const ActionTable table(schedule);
  const StageNeighbors neighbors = stage_neighbors(schedule);
  for (std::size_t call = 0; call < times.size(); ++call)
    for (std::size_t track = 0; track < times[call].size(); ++track) {
      const int of = in.recorded.world().tracks[call][track].rank;
      // A rank's part of a joint step counts with the steps of its own that follow.
      for (const PlacedAction& placed : in.calls[call])
        if (of == in.world.rank_of(placed.rank, lane))
          of_action[static_cast<std::size_t>(placed.id)] = times[call][track];
      const Action& send = in.calls[call].front().action;
      if (!is_send(send.op)) continue;
      const bool forward = send.op == Op::kSendActivation;
      const int to = (forward ? neighbors.successor : neighbors.predecessor)[static_cast<std::size_t>(send.stage)];
      const int receiver = in.world.rank_of(schedule.stages[static_cast<std::size_t>(to)].rank, lane);
      const std::int32_t receive =
          table.find(forward ? Op::kRecvActivation : Op::kRecvGradient, to, send.microbatch, send.part);
      if (receive >= 0 && receiver >= 0 && in.world.track_lane(receiver) == in.world.track_lane(of))
        of_action[static_cast<std::size_t>(receive)] = times[call][track];
    }
  return of_action;
}

/// Returns the sums of the micro-batches that have passed the stage.
std::vector<MicrobatchLoss> losses_of(const TrainingPlan& training, std::size_t stage,
                                      const std::vector<double>& sums) {
  std::vector<MicrobatchLoss> losses;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (training.versions.version[stage][i] >= 0) losses.push_back({.microbatch = static_cast<int>(i), .sum = sums[i]});
  return losses;
}

void append(std::vector<MicrobatchLoss>& to, const std::vector<MicrobatchLoss>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Adds a rank's losses. Tensor ranks have the same losses, which the first of them reports.
void add_losses(RankReplay& replay, const ReplayInputs& in, DeviceMachine& machine, std::size_t rank, int lane) {
  const Schedule& schedule = in.training.replay.schedule;
  if (in.world.place(static_cast<int>(rank), lane).tensor != 0) return;
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    if (static_cast<std::size_t>(schedule.stages[stage].rank) != rank) continue;
    const StageData& data = in.stages.at(lane, stage).data();
    if (data.ends_model()) append(replay.losses, losses_of(in.training, stage, data.losses(machine)));
    if (data.has_experts()) append(replay.balance_losses, losses_of(in.training, stage, data.balance_losses(machine)));
  }
}

}  // namespace

std::vector<RankReplay> replay_outcomes(const ReplayInputs& in, DeviceMachine& machine,
                                        const std::vector<CallTimes>& of_world_calls) {
  const Schedule& schedule = in.training.replay.schedule;
  const ActionIds ids = action_ids(schedule);
  const std::vector<std::vector<CallTimes>> times = in.recorded.times(of_world_calls);
  std::vector<RankReplay> replays;
  for (int lane = 0; lane < in.world.lanes(); ++lane) {
    const std::vector<CallTimes> of_action = times_of_actions(in, times, lane);
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const int world_rank = in.world.rank_of(static_cast<int>(rank), lane);
      if (!in.world.is_here(world_rank)) continue;
      RankReplay& replay = replays.emplace_back(RankReplay{.rank = world_rank});
      for (std::size_t position = 0; position < schedule.ranks[rank].size(); ++position) {
        const Action& action = schedule.ranks[rank][position];
        const CallTimes& own = of_action[static_cast<std::size_t>(ids.first_id[rank]) + position];
        replay.timeline.spans.push_back(
            {.start = own.start, .end = own.end, .action = action, .stream = stream_of(action.op)});
        replay.end = std::max(replay.end, own.end);
      }
      add_losses(replay, in, machine, rank, lane);
    }
  }
  return replays;
}

}}  // namespace plumb::executor
