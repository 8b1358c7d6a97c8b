#include "simulator/network/simulate_network.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "schedules/action_table.h"
#include "schedules/error.h"
#include "simulator/network/fold.h"
#include "simulator/network/limiting_links.h"
#include "simulator/simulation_of.h"

namespace plumb {
namespace {

bool is_plain(const NetworkSpec& network) {
  const auto is_normal = [](double speed) { return speed == 1.0; };
  return !has_routes(network) && network.collective_slowdown == 0 && std::ranges::all_of(network.speeds, is_normal);
}

struct Simulated {
  Fold fold;
  bool plain = false;  ///< the compiled engine answers
};

Simulated what_to_simulate(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network,
                           Replicas replicas) {
  check_network(network, lowered);
  NetworkSpec limiting = with_limiting_links(network, lowered, costs);
  if (replicas == Replicas::kUnfolded) {
    std::vector<int> all(limiting.replicas);
    std::iota(all.begin(), all.end(), 0);
    return {.fold = {.network = std::move(limiting), .first_replica = std::move(all)}};
  }
  if (is_plain(limiting)) return {.fold = {}, .plain = true};
  return {.fold = folded(limiting, static_cast<int>(lowered.stages.size()))};
}

}  // namespace

std::int64_t simulated_actions(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network,
                               Replicas replicas) {
  const Simulated simulated = what_to_simulate(lowered, costs, network, replicas);
  return simulated.plain ? 0 : action_count(lowered) * simulated.fold.network.replicas;
}

Simulation simulate(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network,
                    const SimulationOptions& options, Replicas replicas) {
  const Simulated asked = what_to_simulate(lowered, costs, network, replicas);
  if (asked.plain) return simulate(lowered, costs, options);
  if (options.burst_bytes > 0)
    throw SpecError(
        "a burst is simulated where nothing else is shared and all ranks have their normal speed: leave the "
        "burst or the rest away");
  const NetworkSpec& simulated = asked.fold.network;
  const std::int64_t actions = action_count(lowered) * simulated.replicas;
  if (actions > kMostSimulatedActions) {
    throw SpecError(
        fmt::format("{} replicas that are not alike have {} actions together, more than the {} that can be "
                    "simulated with shared links: use fewer replicas or micro-batches, or private links",
                    simulated.replicas, actions, kMostSimulatedActions));
  }
  // The compiled engine first: it names deadlocks and missing messages, and is what sharing is held against.
  SimulationOptions sums_only = options;
  sums_only.record_timeline = false;
  const SimTime unshared = simulate(lowered, costs, sums_only).makespan;

  const EventProgram program = event_program(lowered, costs, simulated, options.sends);
  const EventTimes times = event_times(lowered, program, simulated, options.sends);
  const auto last = static_cast<std::ptrdiff_t>(std::ranges::max_element(times.end) - times.end.begin());
  const SimTime makespan = times.end.empty() ? SimTime{0} : times.end[last];
  const int replica = program.actions == 0 ? 0 : static_cast<int>(last / program.actions);
  Simulation simulation =
      simulation_of(lowered, program.table, costs, action_times_of(program, times, replica, options.record_timeline),
                    makespan, options.record_timeline);
  simulation.engine = "events";
  simulation.added = makespan - unshared;
  simulation.replicas = simulated.replicas;
  simulation.replica = asked.fold.first_replica[replica];
  return simulation;
}

}  // namespace plumb
