#include "simulator/network/simulate_network.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "schedules/dependencies/action_table.h"
#include "schedules/error.h"
#include "schedules/limits.h"
#include "simulator/network/engine/event_path.h"
#include "simulator/network/fold.h"
#include "simulator/network/limiting_links.h"
#include "simulator/simulation_of.h"

namespace plumb { inline namespace simulator {
namespace {

bool is_plain(const NetworkSpec& network) {
  const auto is_normal = [](double speed) { return speed == 1.0; };
  return !has_routes(network) && network.collective_slowdown == 0 && std::ranges::all_of(network.speeds, is_normal);
}

}  // namespace

SharedNetwork shared_network(const NetworkSpec& network, const Schedule& lowered, const CostTable& costs,
                             Replicas replicas, const std::vector<int>& kinds) {
  check_network(network, lowered);
  SharedNetwork shared{.limiting = limiting_links(network, lowered, costs)};
  NetworkSpec limiting = with_links(network, shared.limiting);
  shared.plain = replicas == Replicas::kFolded && is_plain(limiting);
  if (replicas == Replicas::kUnfolded) {
    shared.first_replica.resize(static_cast<std::size_t>(limiting.replicas));
    std::iota(shared.first_replica.begin(), shared.first_replica.end(), 0);
    shared.network = std::move(limiting);
  } else if (!shared.plain || !kinds.empty()) {
    const int stages = static_cast<int>(lowered.stages.size());
    shared.classes = alike_classes(limiting, stages, kinds);
    Fold fold = folded(limiting, stages, shared.classes);
    shared.network = std::move(fold.network);
    shared.first_replica = std::move(fold.first_replica);
  }
  return shared;
}

void require_simulable(const NetworkSpec& simulated, const Schedule& lowered) {
  const std::int64_t actions = action_count(lowered) * simulated.replicas;
  if (actions > kMostSimulatedActions) {
    throw SpecError(
        fmt::format("{} replicas that are not alike have {} actions together, more than the {} that can be "
                    "simulated with shared links: use fewer replicas or micro-batches, or private links",
                    simulated.replicas, actions, kMostSimulatedActions));
  }
}

NetworkSpec with_figures(const SharedNetwork& shared, const NetworkSpec& other, const Schedule& lowered) {
  NetworkSpec limiting = with_links(other, shared.limiting);
  if (shared.classes.replicas == 0) return limiting;
  return folded(limiting, static_cast<int>(lowered.stages.size()), shared.classes).network;
}

std::int64_t simulated_actions(const SharedNetwork& shared, const Schedule& lowered) {
  return shared.plain ? 0 : action_count(lowered) * shared.network.replicas;
}

Simulation simulate(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network,
                    const SimulationOptions& options, Replicas replicas) {
  return simulate(lowered, costs, shared_network(network, lowered, costs, replicas), options);
}

Simulation simulate(const Schedule& lowered, const CostTable& costs, const SharedNetwork& asked,
                    const SimulationOptions& options) {
  if (asked.plain) return simulate(lowered, costs, options);
  if (options.burst_bytes > 0)
    throw SpecError(
        "a burst is simulated where nothing else is shared and all ranks have their normal speed: leave the "
        "burst or the rest away");
  const NetworkSpec& simulated = asked.network;
  require_simulable(simulated, lowered);
  // The compiled engine runs first: it names deadlocks and missing messages, and sharing is compared with its time.
  SimulationOptions sums_only = options;
  sums_only.record_timeline = false;
  const SimTime unshared = simulate(lowered, costs, sums_only).makespan;

  const EventProgram program = event_program(lowered, costs, simulated, options.sends);
  const EventTimes times =
      event_times(lowered, program, simulated, options.sends, {.record_meetings = options.record_timeline});
  const auto last = static_cast<std::ptrdiff_t>(std::ranges::max_element(times.end) - times.end.begin());
  const SimTime makespan = times.end.empty() ? SimTime{0} : times.end[last];
  const int replica = program.actions == 0 ? 0 : static_cast<int>(last / program.actions);
  std::optional<std::vector<CriticalStep>> path;
  if (options.record_timeline) path = critical_path(lowered, program, simulated, times);
  const ActionTimes actions = action_times_of(program, times, replica);
  std::vector<RankMemory> memory =
      memory_by_rank(lowered, program.table, costs, actions, options.record_timeline && options.record_memory);
  Simulation simulation = simulation_of(lowered, actions, makespan, std::move(memory), std::move(path), replica);
  for (CriticalStep& step : simulation.critical_path) step.replica = asked.first_replica[step.replica];
  simulation.engine = "events";
  simulation.added = makespan - unshared;
  simulation.replicas = simulated.replicas;
  simulation.replica = asked.first_replica[replica];
  return simulation;
}

}}  // namespace plumb::simulator
