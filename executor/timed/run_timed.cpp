#include "executor/timed/run_timed.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "executor/in_process_transport.h"
#include "executor/timed/emulated_transport.h"
#include "traces/timeline_title.h"

namespace plumb {
namespace {

/// The link between replicas of a pipeline rank: as wide as lets a ring of them sum the rank's gradients in the time
/// that the table gives REDUCE_GRAD, each member sending 2(n-1)/n of the bytes (Patarasuk and Yuan 2009).
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

/// The first failure of any rank; it stops all of them.
struct Failure {
  std::mutex mutex;
  std::exception_ptr first;
};

void run_rank(const TimedSpec& spec, const ReplayPlan& plan, const TimedSeat& seat, TimedRank& result,
              Failure& failure) {
  try {
    ask_for_prompt_waking();
    result = replay_timed_rank(spec, plan, seat);
  } catch (const RunAborted&) {
    // The rank that failed first has said why.
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(failure.mutex);
      if (failure.first == nullptr) failure.first = std::current_exception();
    }
    seat.carrier->abort(error.what());
  }
}

}  // namespace

TimedResult timed_result(const TimedSpec& spec, std::vector<TimedRank> ranks) {
  TimedResult result;
  result.timelines.assign(static_cast<std::size_t>(spec.steps),
                          {.source = Timeline::Source::kMeasured,
                           .title = timeline_title(spec.schedule),
                           .microbatches = spec.schedule.microbatches,
                           .stages = spec.schedule.stages,
                           .ranks = std::vector<RankTimeline>(spec.schedule.ranks.size())});
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

TimedResult run_timed(const TimedSpec& spec) {
  require_timed(spec);
  const ReplayPlan plan = plan_replay(spec.schedule, spec.grid);
  const Sleeper sleeper;
  const int ranks = world_size(spec.grid);
  std::vector<std::unique_ptr<TensorPool>> pools, host_pools;  // they outlive the transports' messages
  InProcessOptions options{.ranks = ranks, .sends = spec.sends, .watchdog = spec.watchdog};
  for (int rank = 0; rank < ranks; ++rank) {
    pools.push_back(std::make_unique<TensorPool>());
    host_pools.push_back(std::make_unique<TensorPool>());
    options.pools.push_back(pools.back().get());
  }
  InProcessTransport carrier(options, [&sleeper] { return sleeper.now(); });
  const auto link = [&spec](int source, int destination) {
    const int from = coordinates_of(spec.grid, source).pipeline, to = coordinates_of(spec.grid, destination).pipeline;
    return from == to ? replica_link(spec, from) : link_between(spec.costs, from, to);
  };
  EmulatedTransport transport(carrier, {.link = link, .burst_bytes = spec.burst_bytes, .sends = spec.sends}, sleeper);

  std::vector<TimedRank> results(static_cast<std::size_t>(ranks));
  Failure failure;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    const TimedSeat seat{.world_rank = static_cast<int>(rank),
                         .carrier = &carrier,
                         .transport = &transport,
                         .pool = pools[rank].get(),
                         .host_pool = host_pools[rank].get(),
                         .sleeper = &sleeper};
    threads.emplace_back(
        [&spec, &plan, seat, &result = results[rank], &failure] { run_rank(spec, plan, seat, result, failure); });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure.first != nullptr) std::rethrow_exception(failure.first);
  return timed_result(spec, std::move(results));
}

}  // namespace plumb
