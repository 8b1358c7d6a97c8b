#include "simulator/repeating_times.h"

#include <doctest/doctest.h>

#include "simulator/steady_state.h"
#include "tests/simulator/support.h"

namespace plumb::test {
TEST_CASE("an order that is compiled once has the times of simulating it, under any costs") {
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == "zb-auto" || entry.name.starts_with("pipedream")) continue;
    for (const int ranks : {2, 4}) {
      for (const int microbatches : {2 * ranks, 40 * ranks}) {
        INFO(entry.name, " p=", ranks, " m=", microbatches);
        const RepeatingSchedule order = repeating(entry.name,
                                                  {.ranks = ranks,
                                                   .microbatches = microbatches,
                                                   .chunks = entry.takes_chunks ? 2 : 1,
                                                   .slices = entry.takes_slices ? 2 : 1},
                                                  {.data = {.enabled = !keeps_no_replicas(entry)}});
        RepeatingTimes times(order);
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
          const CostTable costs = random_costs(order.lowered(microbatches), seed);
          const Simulation simulated = simulate_repeating(order, costs);
          const TimedStep sums = times.of(costs);
          CHECK(sums.makespan == simulated.makespan);
          CHECK(sums.busy == simulated.busy);
        }
      }
    }
  }
}

TEST_CASE("activations that move leave the steady state as it is, though their memory does not hold in issue order") {
  const RepeatingSchedule order =
      repeating("1f1b", {.ranks = 4, .microbatches = 400}, {.offload = 1, .data = {.enabled = true}});
  const Schedule whole = order.lowered(400);
  RepeatingTimes times(order);
  const CostTable costs = random_costs(whole, 1);
  CHECK(times.of(costs).makespan == simulate(whole, compile(whole, Sends::kBuffered), costs, false).makespan);
  CHECK(4 * times.kept_steps() < std::ssize(compile(whole, Sends::kBuffered).steps));
}

}  // namespace plumb::test
