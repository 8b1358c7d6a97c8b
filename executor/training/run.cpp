#include "executor/training/run.h"

#include <algorithm>
#include <utility>

#include "executor/training/interruption.h"
#include "executor/training/training_rank.h"
#include "executor/transport/in_process_transport.h"
#include "kernels/cpu/products/gemm.h"

namespace plumb { inline namespace executor {
RunResult run(const RunSpec& spec, const RunOptions& options) {
  require_threads(spec.grid);
  const TrainingPlan plan = plan_training(spec);
  use_one_blas_thread();
  const RankGrid& grid = plan.replay.grid;
  const int ranks = world_size(grid);
  const RankPools memory(ranks);
  const Clock clock = monotonic_clock();
  InProcessTransport transport({.ranks = ranks,
                                .sends = spec.sends,
                                .watchdog = spec.watchdog,
                                .pools = memory.pool_pointers(),
                                .in_transit = options.threads.in_transit},
                               clock);
  std::vector<ModelValues> gradients;
  ModelValues weights;
  TrainingState state;
  const auto replays = static_cast<std::size_t>(spec.steps - plan.first_step);
  if (options.capture_gradients)
    gradients.assign(replays * plan.batches.sizes.size(), room_for_values(spec, plan.first_layer));
  if (options.capture_weights) weights = room_for_values(spec, plan.first_layer);
  if (options.checkpoint_every > 0) state = room_for_state(spec);

  const auto to_nobody = [](const TrainingState&) {};
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(ranks));
  Interruption interruption(plan.replay.schedule);
  const auto train = [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    TrainingSeat seat;
    seat.world_rank = rank;
    seat.transport = &transport;
    seat.pool = memory.pools[index].get();
    seat.host_pool = memory.host_pools[index].get();
    seat.clock = clock;
    seat.checkpoints.every = options.checkpoint_every;
    seat.checkpoints.state = &state;
    seat.checkpoints.deliver = rank == 0 ? options.checkpoint : to_nobody;
    seat.gradients = options.capture_gradients ? &gradients : nullptr;
    seat.weights = options.capture_weights ? &weights : nullptr;
    seat.ends = options.ends;
    seat.interrupted = [&interruption, place = coordinates_of(grid, rank)](RankTimeline timeline) {
      interruption.add(place, std::move(timeline));
    };
    outcomes[index] = train_rank(spec, plan, seat);
  };
  try {
    run_rank_threads(ranks, transport, spec.watchdog, options.threads, train);
  } catch (const RunError&) {
    interruption.tell(options.interrupted);
    throw;
  }
  RunResult result = run_result(spec, plan, std::move(outcomes));
  result.gradients = std::move(gradients);
  result.weights = std::move(weights);
  return result;
}

}}  // namespace plumb::executor
