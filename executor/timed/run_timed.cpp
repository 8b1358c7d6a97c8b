#include "executor/timed/run_timed.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "executor/communicator.h"
#include "executor/in_process_transport.h"
#include "executor/replay.h"
#include "executor/timed/emulated_transport.h"
#include "executor/timed/sleeper.h"
#include "executor/timed/timed_stage.h"
#include "schedules/error.h"
#include "traces/timeline_title.h"

namespace plumb {
namespace {

/// From the last rank's arrival to the common start of a step: time for every thread to be awake.
constexpr Seconds kStartDelay{2e-3};

/// Of the machine's memory that gradients and messages may take.
constexpr double kMemoryShare = 0.5;
constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

/// What the ranks' threads share. Each writes its own elements only.
struct Session {
  const TimedSpec& spec;
  ReplayPlan plan;
  Sleeper sleeper;
  Clock clock;
  std::vector<std::unique_ptr<TensorPool>> pools;       // [world rank]; they outlive the transports' messages
  std::vector<std::unique_ptr<TensorPool>> host_pools;  // [world rank]
  std::unique_ptr<InProcessTransport> carrier;
  std::unique_ptr<EmulatedTransport> transport;
  std::vector<std::vector<SimTime>> ends;  // [world rank][replay]
  TimedResult result;
  std::mutex failure_mutex;
  std::exception_ptr failure;  // the first
};

/// What REDUCE_GRAD of a stage sums. [part]
std::vector<std::int64_t> bucket_bytes(const StageCosts& costs) {
  std::vector<std::int64_t> bytes;
  for (const std::vector<Segment>& part : costs.segments[static_cast<std::size_t>(Op::kReduceGrad)]) {
    bytes.push_back(0);
    for (const Segment& segment : part)
      if (segment.kind == Segment::Kind::kCollective) bytes.back() += segment.bytes;
  }
  return bytes;
}

std::int64_t gradient_bytes(const StageCosts& costs) {
  const std::vector<std::int64_t> buckets = bucket_bytes(costs);
  return std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0});
}

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

TimedStageBytes bytes_of(const Session& session, std::size_t stage) {
  const std::vector<StageCosts>& costs = session.spec.costs.stages;
  TimedStageBytes bytes{.buckets = bucket_bytes(costs[stage])};
  for (const Action& action : session.plan.schedule.ranks[session.plan.schedule.stages[stage].rank])
    if (action.op == Op::kReduceGrad && action.stage == static_cast<int>(stage))
      bytes.buckets.resize(std::max(bytes.buckets.size(), static_cast<std::size_t>(action.part) + 1));

  if (const int before = session.plan.neighbors.predecessor[stage]; before >= 0) {
    bytes.input = costs[static_cast<std::size_t>(before)].activation_message_bytes;
    bytes.input_gradient = costs[stage].gradient_message_bytes;
  }
  if (const int behind = session.plan.neighbors.successor[stage]; behind >= 0) {
    bytes.output = costs[stage].activation_message_bytes;
    bytes.output_gradient = costs[static_cast<std::size_t>(behind)].gradient_message_bytes;
  }
  return bytes;
}

std::vector<int> all_ranks(const ProcessGrid& grid) {
  std::vector<int> ranks(static_cast<std::size_t>(world_size(grid)));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// All ranks have come; the moment at which all of them start.
SimTime meet(Communicator& everyone, const Sleeper& sleeper) {
  std::array<float, 2> moment{};
  everyone.run(all_reduce(moment));
  if (everyone.member() == 0)
    moment = std::bit_cast<std::array<float, 2>>((sleeper.now() + to_sim_time(kStartDelay)).count());
  everyone.run(broadcast(moment, 0));
  const SimTime start{std::bit_cast<std::int64_t>(moment)};
  sleeper.sleep_until(start);
  return start;
}

void replay_steps(Session& session, int world_rank) {
  const TimedSpec& spec = session.spec;
  const GridCoordinates place = coordinates_of(spec.grid, world_rank);
  const auto own = static_cast<std::size_t>(world_rank);
  const auto pipeline_rank = static_cast<std::size_t>(place.pipeline);
  Communicator everyone(*session.carrier, {"all ranks", all_ranks(spec.grid)}, world_rank, session.clock);
  ReplayGroups groups = connect_groups(session.plan, *session.transport, place, session.clock);
  ReplaySeat seat{.place = place,
                  .stages = std::vector<Stage*>(session.plan.schedule.stages.size(), nullptr),
                  .transport = session.transport.get(),
                  .groups = &groups,
                  .pool = session.pools[own].get(),
                  .host_pool = session.host_pools[own].get(),
                  .clock = session.clock};
  std::vector<std::unique_ptr<TimedStage>> stages;
  for (std::size_t stage = 0; stage < seat.stages.size(); ++stage) {
    if (session.plan.schedule.stages[stage].rank != place.pipeline) continue;
    stages.push_back(std::make_unique<TimedStage>(static_cast<int>(stage), bytes_of(session, stage),
                                                  spec.speeds.empty() ? 1 : spec.speeds[pipeline_rank], spec.costs,
                                                  session.sleeper, *seat.pool));
    seat.stages[stage] = stages.back().get();
  }
  for (int step = 0; step < spec.steps; ++step) {
    const SimTime start = meet(everyone, session.sleeper);
    RankTimeline timeline = replay(session.plan, seat, start);
    session.ends[own].push_back(session.clock() - start);
    if (place.data == 0)
      session.result.timelines[static_cast<std::size_t>(step)].ranks[pipeline_rank] = std::move(timeline);
  }
}

void run_rank(Session& session, int world_rank) {
  try {
    ask_for_prompt_waking();
    replay_steps(session, world_rank);
  } catch (const RunAborted&) {
    // The rank that failed first has said why.
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(session.failure_mutex);
      if (session.failure == nullptr) session.failure = std::current_exception();
    }
    session.carrier->abort(error.what());
  }
}

void require_usable(const TimedSpec& spec) {
  if (spec.costs.stages.size() != spec.schedule.stages.size())
    throw SpecError("the cost table has not a row for each stage of the schedule");
  if (!spec.speeds.empty() && spec.speeds.size() != spec.schedule.ranks.size())
    throw SpecError("speeds are given for some of the ranks only: give one for each, or none");
  double bytes = 0;  // each stage's gradients, and a message each way with its copy on the way
  for (const StageCosts& stage : spec.costs.stages)
    bytes += static_cast<double>(gradient_bytes(stage)) +
             3 * static_cast<double>(stage.activation_message_bytes + stage.gradient_message_bytes);
  bytes *= spec.grid.data;
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes > kMemoryShare * memory)
    throw SpecError(
        fmt::format("the timed backend moves real bytes, and the ranks' gradients and messages take {:.1f} "
                    "GiB, of this machine's {:.1f} GiB: shrink them (--shrink K keeps the times)",
                    bytes / kBytesPerGib, memory / kBytesPerGib));
}

}  // namespace

CostTable shrink_bytes(CostTable costs, double factor) {
  if (!(factor >= 1)) throw SpecError(fmt::format("bytes shrunk by {}: give a factor of 1 or more", factor));
  const auto shrink = [factor](std::int64_t& bytes) {
    if (bytes > 0) bytes = std::max<std::int64_t>(1, std::llround(static_cast<double>(bytes) / factor));
  };
  for (StageCosts& stage : costs.stages) {
    shrink(stage.activation_message_bytes);
    shrink(stage.gradient_message_bytes);
    for (std::vector<Segment>& part : stage.segments[static_cast<std::size_t>(Op::kReduceGrad)])
      for (Segment& segment : part) shrink(segment.bytes);
  }
  costs.default_link.bytes_per_second /= factor;
  for (auto& [ranks, link] : costs.links) link.bytes_per_second /= factor;
  return costs;
}

TimedResult run_timed(const TimedSpec& spec) {
  require_usable(spec);
  Session session{.spec = spec, .plan = plan_replay(spec.schedule, spec.grid)};
  session.clock = [&sleeper = session.sleeper] { return sleeper.now(); };
  const int ranks = world_size(spec.grid);
  InProcessOptions carrier{.ranks = ranks, .sends = spec.sends, .watchdog = spec.watchdog};
  for (int rank = 0; rank < ranks; ++rank) {
    session.pools.push_back(std::make_unique<TensorPool>());
    session.host_pools.push_back(std::make_unique<TensorPool>());
    carrier.pools.push_back(session.pools.back().get());
  }
  session.carrier = std::make_unique<InProcessTransport>(carrier, session.clock);
  const auto link = [&spec](int source, int destination) {
    const int from = coordinates_of(spec.grid, source).pipeline, to = coordinates_of(spec.grid, destination).pipeline;
    return EmulatedLinkSpec{from == to ? replica_link(spec, from) : link_between(spec.costs, from, to),
                            spec.burst_bytes};
  };
  session.transport = std::make_unique<EmulatedTransport>(
      *session.carrier, EmulatedNetwork{.link = link, .sends = spec.sends}, session.sleeper);
  session.ends.resize(static_cast<std::size_t>(ranks));
  session.result.timelines.assign(static_cast<std::size_t>(spec.steps),
                                  {.source = Timeline::Source::kMeasured,
                                   .title = timeline_title(spec.schedule),
                                   .microbatches = spec.schedule.microbatches,
                                   .stages = spec.schedule.stages,
                                   .ranks = std::vector<RankTimeline>(spec.schedule.ranks.size())});

  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, std::ref(session), rank);
  for (std::thread& thread : threads) thread.join();
  if (session.failure != nullptr) std::rethrow_exception(session.failure);
  for (std::size_t step = 0; step < static_cast<std::size_t>(spec.steps); ++step) {
    SimTime last{0};
    for (const std::vector<SimTime>& ends : session.ends) last = std::max(last, ends[step]);
    session.result.step_seconds.push_back(to_seconds(last));
  }
  return std::move(session.result);
}

}  // namespace plumb
