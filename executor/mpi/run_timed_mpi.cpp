#include "executor/mpi/run_timed_mpi.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/mpi/mpi_transport.h"
#include "executor/mpi/mpi_world.h"
#include "executor/timed/timed_rank_bytes.h"

namespace plumb {
namespace {

bool has_joined = false;

/// From the first use to the end of the process: MPI begins once.
MpiWorld& world() {
  static MpiWorld world;
  has_joined = true;
  return world;
}

}  // namespace

std::optional<TimedResult> run_timed_mpi(const TimedSpec& spec) {
  MpiWorld& ranks = world();
  const int needed = world_size(spec.grid);
  if (ranks.size() != needed)
    throw SpecError(fmt::format("the schedule has {} ranks and {} were started: start it with mpirun -n {}", needed,
                                ranks.size(), needed));
  if (!ranks.agree_on(fingerprint(spec)))
    throw SpecError("the ranks were given different plans: start all of them with the same files and options");
  require_timed(spec);
  const ReplayPlan plan = plan_replay(spec.schedule, spec.grid);
  const Sleeper sleeper(ranks.common_moment_ns());
  TensorPool pool, host_pool;
  std::string bytes;
  {
    MpiTransport transport({.sends = spec.sends, .watchdog = spec.watchdog}, [&sleeper] { return sleeper.now(); });
    ask_for_prompt_waking();
    bytes = to_bytes(replay_timed_rank(spec, plan,
                                       {.world_rank = ranks.rank(),
                                        .carrier = &transport,
                                        .transport = &transport,
                                        .pool = &pool,
                                        .host_pool = &host_pool,
                                        .sleeper = &sleeper}));
  }
  const std::vector<std::string> gathered = ranks.gather(bytes);
  if (gathered.empty()) return {};
  std::vector<TimedRank> results;
  for (const std::string& rank : gathered) results.push_back(timed_rank_from_bytes(rank));
  return timed_result(spec, std::move(results));
}

bool has_joined_mpi() {
  return has_joined;
}

void stop_mpi_ranks(int status) {
  MpiWorld::stop_all(status);
}

}  // namespace plumb
