#include "executor/mpi/run_mpi.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/spec/run_shape.h"
#include "executor/training/gather_state.h"
#include "executor/training/rank_outcome_bytes.h"
#include "executor/training/training_rank.h"
#include "executor/transport/emulated/sleeper.h"
#include "executor/transport/mpi/mpi_transport.h"
#include "executor/transport/mpi/mpi_world.h"
#include "kernels/cpu/products/gemm.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

void require_separate_memories(const RunSpec& spec, const RunOptions& options) {
  if (options.capture_gradients || options.capture_weights)
    throw SpecError("gradients and weights are captured by ranks of one process: run without mpirun");
  for (const std::vector<Action>& actions : spec.schedule.ranks)
    if (std::ranges::any_of(actions, [](const Action& a) { return a.op == Op::kEvict || a.op == Op::kLoad; }))
      throw ScheduleError(
          fmt::format("{}: EVICT and LOAD write to the memory of another rank, which is another process here: run this "
                      "schedule without mpirun",
                      spec.schedule.name));
}

}  // namespace

std::optional<RunResult> run_mpi(const RunSpec& spec, const RunOptions& options) {
  MpiWorld& world = MpiWorld::joined();
  world.require_team(world_size(rank_grid_of(spec)), fingerprint(spec), spec.watchdog);
  require_separate_memories(spec, options);
  const TrainingPlan plan = plan_training(spec);
  use_one_blas_thread();
  const Sleeper sleeper(world.common_moment_ns());
  const Clock clock = [&sleeper] { return sleeper.now(); };
  TensorPool pool, host_pool;
  TrainingState own;
  if (options.checkpoint_every > 0) own = own_room_for_state(spec, plan, world.rank());
  std::string bytes;
  {
    MpiTransport transport({.sends = spec.sends, .watchdog = spec.watchdog}, clock);
    const auto deliver = [&](const TrainingState& state) {
      const TrainingState whole = gather_state(spec, plan, state, world.rank(), transport, clock);
      if (world.rank() == 0) options.checkpoint(whole);
    };
    Interruption interruption(spec.schedule);
    TrainingSeat seat;
    seat.world_rank = world.rank();
    seat.transport = &transport;
    seat.pool = &pool;
    seat.host_pool = &host_pool;
    seat.clock = clock;
    seat.checkpoints.every = options.checkpoint_every;
    seat.checkpoints.state = &own;
    seat.checkpoints.is_shared = false;
    seat.checkpoints.deliver = deliver;
    seat.ends = options.ends;
    seat.interrupted = [&](RankTimeline timeline) {
      interruption.add(coordinates_of(plan.replay.grid, world.rank()), std::move(timeline));
      interruption.tell(options.interrupted);
    };
    bytes = to_bytes(train_rank(spec, plan, seat));
  }
  const std::vector<std::string> gathered = world.gather(bytes);
  if (gathered.empty()) return {};
  std::vector<RankOutcome> outcomes;
  for (const std::string& rank : gathered) outcomes.push_back(rank_outcome_from_bytes(rank));
  return run_result(spec, plan, std::move(outcomes));
}

}}  // namespace plumb::executor
