#include "executor/timed/run_timed.h"

#include <algorithm>
#include <utility>

#include "executor/training/run_result.h"
#include "executor/transport/emulated/emulated_transport.h"
#include "executor/transport/in_process_transport.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns the link between replicas of a pipeline rank. It is as wide as lets a ring of them sum the rank's gradients
/// in the time that the table gives REDUCE_GRAD, each member sending 2(n-1)/n of the bytes (Patarasuk and Yuan 2009).
LinkCost replica_link(const TimedSpec& spec, int pipeline_rank) {
  double bytes = 0, seconds = 0;
  for (std::size_t stage = 0; stage < spec.schedule.stages.size(); ++stage) {
    if (spec.schedule.stages[stage].rank != pipeline_rank) continue;
    bytes += static_cast<double>(gradient_bytes(spec.costs.stages[stage]));
    for (const std::vector<Segment>& part :
         spec.costs.stages[stage].segments[static_cast<std::size_t>(Op::kReduceGrad)])
      for (const Segment& segment : part) seconds += segment.seconds.count();
  }
  if (bytes == 0 || seconds == 0) return {};
  const double replicas = spec.grid.data;
  return {.bytes_per_second = 2 * (replicas - 1) / replicas * bytes / seconds};
}

}  // namespace

TimedResult timed_result(const TimedSpec& spec, std::vector<TimedRank> ranks) {
  TimedResult result;
  result.timelines.assign(ranks.front().ends.size(), empty_timeline(spec.schedule));
  for (std::size_t step = 0; step < result.timelines.size(); ++step) {
    SimTime last{0};
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      last = std::max(last, ranks[rank].ends[step]);
      const GridCoordinates place = coordinates_of(spec.grid, static_cast<int>(rank));
      if (place.data == 0)
        result.timelines[step].ranks[static_cast<std::size_t>(place.pipeline)] = std::move(ranks[rank].timelines[step]);
    }
    result.step_seconds.push_back(to_seconds(last));
  }
  return result;
}

TimedResult run_timed(const TimedSpec& spec, const TimedOptions& options) {
  require_timed(spec);
  require_threads(spec.grid);
  const ReplayPlan plan = plan_replay(spec.schedule, spec.grid);
  const Sleeper sleeper;
  const int ranks = world_size(spec.grid);
  const RankPools memory(ranks);
  InProcessTransport carrier({.ranks = ranks,
                              .sends = spec.sends,
                              .watchdog = spec.watchdog,
                              .pools = memory.pool_pointers(),
                              .in_transit = options.threads.in_transit},
                             [&sleeper] { return sleeper.now(); });
  const auto link = [&spec](int source, int destination) {
    const int from = coordinates_of(spec.grid, source).pipeline, to = coordinates_of(spec.grid, destination).pipeline;
    return from == to ? replica_link(spec, from) : link_between(spec.costs, from, to);
  };
  EmulatedTransport transport(carrier, {.link = link, .burst_bytes = spec.burst_bytes, .sends = spec.sends}, sleeper);

  std::vector<TimedRank> results(static_cast<std::size_t>(ranks));
  Interruption interruption(spec.schedule);
  const auto replay_rank = [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    const auto interrupted = [&interruption, place = coordinates_of(spec.grid, rank)](RankTimeline timeline) {
      interruption.add(place, std::move(timeline));
    };
    ask_for_prompt_waking();
    results[index] = replay_timed_rank(spec, plan,
                                       {.world_rank = rank,
                                        .carrier = &carrier,
                                        .transport = &transport,
                                        .pool = memory.pools[index].get(),
                                        .host_pool = memory.host_pools[index].get(),
                                        .sleeper = &sleeper,
                                        .interrupted = interrupted,
                                        .ends = options.ends});
  };
  try {
    run_rank_threads(ranks, carrier, spec.watchdog, options.threads, replay_rank);
  } catch (const RunError&) {
    interruption.tell(options.interrupted);
    throw;
  }
  return timed_result(spec, std::move(results));
}

}}  // namespace plumb::executor
