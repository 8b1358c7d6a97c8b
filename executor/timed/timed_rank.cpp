#include "executor/timed/timed_rank.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <utility>

#include "executor/timed/timed_stage.h"
#include "executor/training/interruption.h"
#include "executor/transport/communicator.h"
#include "schedules/error.h"
#include "schedules/phases.h"

namespace plumb { inline namespace executor {
namespace {

/// The time from the last rank's arrival to the common start of a step, in which every rank wakes up.
constexpr Seconds kStartDelay{2e-3};

TimedStageBytes bytes_of(const TimedSpec& spec, const ReplayPlan& plan, std::size_t stage) {
  const std::vector<StageCosts>& costs = spec.costs.stages;
  TimedStageBytes bytes{.buckets = bucket_bytes(costs[stage])};
  for (const Action& action : plan.schedule.ranks[static_cast<std::size_t>(plan.schedule.stages[stage].rank)])
    if (action.op == Op::kReduceGrad && action.stage == static_cast<int>(stage))
      bytes.buckets.resize(std::max(bytes.buckets.size(), static_cast<std::size_t>(action.part) + 1));
  if (const int before = plan.neighbors.predecessor[stage]; before >= 0) {
    bytes.input = costs[static_cast<std::size_t>(before)].activation_message_bytes;
    bytes.input_gradient = costs[stage].gradient_message_bytes;
  }
  if (const int behind = plan.neighbors.successor[stage]; behind >= 0) {
    bytes.output = costs[stage].activation_message_bytes;
    bytes.output_gradient = costs[static_cast<std::size_t>(behind)].gradient_message_bytes;
  }
  return bytes;
}

/// Waits for all ranks and returns the moment at which all of them start, or nothing if one is to end.
std::optional<SimTime> meet(Communicator& everyone, const TimedSeat& seat) {
  const Sleeper& sleeper = *seat.sleeper;
  std::array<float, 2> moment = {seat.ends && seat.ends() ? 1.0F : 0.0F};
  everyone.run(all_reduce(moment));
  if (moment[0] > 0) return std::nullopt;
  if (everyone.member() == 0)
    moment = std::bit_cast<std::array<float, 2>>((sleeper.now() + to_sim_time(kStartDelay)).count());
  everyone.run(broadcast(moment, 0));
  const SimTime start{std::bit_cast<std::int64_t>(moment)};
  sleeper.sleep_until(start);
  return start;
}

}  // namespace

TimedRank replay_timed_rank(const TimedSpec& spec, const ReplayPlan& plan, const TimedSeat& seat) {
  const GridCoordinates place = coordinates_of(spec.grid, seat.world_rank);
  const Clock clock = [sleeper = seat.sleeper] { return sleeper->now(); };
  Communicator everyone(*seat.carrier, everyone_of(spec.grid), seat.world_rank, clock);
  ReplayGroups groups = connect_groups(plan, *seat.transport, place, clock);
  ReplaySeat replay_seat{.place = place,
                         .stages = std::vector<Stage*>(plan.schedule.stages.size(), nullptr),
                         .transport = seat.transport,
                         .groups = &groups,
                         .pool = seat.pool,
                         .host_pool = seat.host_pool,
                         .clock = clock,
                         .interrupted = seat.interrupted};
  const double speed = spec.speeds.empty() ? 1 : spec.speeds[static_cast<std::size_t>(place.pipeline)];
  std::vector<std::unique_ptr<TimedStage>> stages;
  for (std::size_t stage = 0; stage < replay_seat.stages.size(); ++stage) {
    if (plan.schedule.stages[stage].rank != place.pipeline) continue;
    stages.push_back(std::make_unique<TimedStage>(static_cast<int>(stage), bytes_of(spec, plan, stage), speed,
                                                  spec.costs, *seat.sleeper, *seat.pool));
    replay_seat.stages[stage] = stages.back().get();
  }
  replay_seat.run_pair = [&](const Action& first, const Action& second, const auto& run_first, const auto& run_second) {
    const SimTime lasts = pair_duration(spec.costs, first, second);
    const SimTime end =
        seat.sleeper->now() + to_sim_time(to_seconds(lasts) / speed, "an overlapped pair at its rank's speed");
    for (const auto& stage : stages) stage->set_in_pair(true);
    run_first();
    run_second();
    for (const auto& stage : stages) stage->set_in_pair(false);
    seat.sleeper->sleep_until(end);
  };
  TimedRank result;
  try {
    for (int step = 0; step < spec.steps; ++step) {
      const RankTimeline* before = result.timelines.empty() ? nullptr : &result.timelines.back();
      const std::optional<SimTime> start =
          between_steps(seat.world_rank, step, before, seat.interrupted, [&] { return meet(everyone, seat); });
      if (!start) break;
      result.timelines.push_back(replay(plan, replay_seat, *start));
      result.ends.push_back(clock() - *start);
    }
  } catch (const RunAborted&) {
    throw;
  } catch (const std::exception& error) {
    seat.carrier->abort(sentence_of(error));  // ends the rank's own collectives under way, which its groups wait for
    throw;
  }
  return result;
}

}}  // namespace plumb::executor
