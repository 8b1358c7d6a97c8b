#include "executor/training/gather_state.h"

#include <mutex>

#include <doctest/doctest.h>

#include "executor/training/run.h"
#include "executor/training/training_rank.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

/// Returns the checkpoint after one step by ranks that share a state.
TrainingState shared_checkpoint(const RunSpec& spec) {
  TrainingState state;
  RunOptions options{.checkpoint_every = 1};
  options.checkpoint = [&](const TrainingState& written) { state = written; };
  run(spec, options);
  return state;
}

/// Returns the checkpoint after one step by ranks that each have written into a state of their own.
TrainingState gathered_checkpoint(const RunSpec& spec) {
  const TrainingPlan plan = plan_training(spec);
  const int ranks = world_size(spec.grid);
  const RankPools memory(ranks);
  const Clock clock = monotonic_clock();
  InProcessTransport transport({.ranks = ranks, .watchdog = spec.watchdog, .pools = memory.pool_pointers()}, clock);
  TrainingState whole;
  run_rank_threads(ranks, transport, spec.watchdog, {}, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    TrainingState own = own_room_for_state(spec, plan, rank);
    const auto deliver = [&](const TrainingState& state) {
      TrainingState gathered = gather_state(spec, plan, state, rank, transport, clock);
      if (rank == 0) whole = std::move(gathered);
    };
    train_rank(spec, plan,
               {.world_rank = rank,
                .transport = &transport,
                .pool = memory.pools[index].get(),
                .host_pool = memory.host_pools[index].get(),
                .clock = clock,
                .checkpoints = {.every = 1, .state = &own, .is_shared = false, .deliver = deliver}});
  });
  return whole;
}

}  // namespace

TEST_CASE("ranks that share no memory make the checkpoint of ranks that do, bitwise, again and again") {
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
  for (const auto& [data, tensor, zero] :
       std::vector<std::tuple<int, int, int>>{{1, 1, 0}, {2, 1, 0}, {2, 1, 1}, {1, 2, 0}, {2, 2, 2}}) {
    CAPTURE(data);
    CAPTURE(tensor);
    CAPTURE(zero);
    for (const OptimizerSettings& optimizer : {OptimizerSettings(AdamW{}), OptimizerSettings(Sgd{.momentum = 0.9F})}) {
      RunSpec spec = spec_of_lowered(gpt_model(2), lower(order, {.data = {.enabled = data > 1, .zero = zero}}), data);
      spec.grid.tensor = tensor;
      spec.zero = zero;
      spec.optimizer = optimizer;
      spec.steps = 3;
      CHECK(gathered_checkpoint(spec) == shared_checkpoint(spec));
    }
  }
}

}  // namespace plumb::test
