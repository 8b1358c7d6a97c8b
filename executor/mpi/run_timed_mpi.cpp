#include "executor/mpi/run_timed_mpi.h"

#include <string>
#include <utility>
#include <vector>

#include "executor/timed/timed_rank_bytes.h"
#include "executor/transport/mpi/mpi_transport.h"
#include "executor/transport/mpi/mpi_world.h"

namespace plumb { inline namespace executor {

std::optional<TimedResult> run_timed_mpi(const TimedSpec& spec, const TimedOptions& options) {
  MpiWorld& ranks = MpiWorld::joined();
  ranks.require_team(world_size(spec.grid), fingerprint(spec), spec.watchdog);
  require_timed(spec);
  const ReplayPlan plan = plan_replay(spec.schedule, spec.grid);
  const Sleeper sleeper(ranks.common_moment_ns());
  TensorPool pool, host_pool;
  std::string bytes;
  {
    MpiTransport transport({.sends = spec.sends, .watchdog = spec.watchdog}, [&sleeper] { return sleeper.now(); });
    ask_for_prompt_waking();
    Interruption interruption(spec.schedule);
    const auto listener = [&](RankTimeline timeline) {
      interruption.add(coordinates_of(spec.grid, ranks.rank()), std::move(timeline));
      interruption.tell(options.interrupted);
    };
    bytes = to_bytes(replay_timed_rank(spec, plan,
                                       {.world_rank = ranks.rank(),
                                        .carrier = &transport,
                                        .transport = &transport,
                                        .pool = &pool,
                                        .host_pool = &host_pool,
                                        .sleeper = &sleeper,
                                        .interrupted = listener,
                                        .ends = options.ends}));
  }
  const std::vector<std::string> gathered = ranks.gather(bytes);
  if (gathered.empty()) return {};
  std::vector<TimedRank> results;
  for (const std::string& rank : gathered) results.push_back(timed_rank_from_bytes(rank));
  return timed_result(spec, std::move(results));
}

}}  // namespace plumb::executor
