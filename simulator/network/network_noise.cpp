#include "simulator/network/network_noise.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "simulator/noise/noise_draws.h"

namespace plumb { inline namespace simulator {
namespace {

/// Returns [drawn replica * ranks + rank] the time of computing, of the first simulated replica that draws as each.
std::vector<SimTime> busy_of(const EventProgram& program, const EventTimes& times, const std::vector<int>& first_of,
                             std::size_t ranks) {
  std::vector<SimTime> busy(first_of.size() * ranks, SimTime{0});
  for (std::size_t replica = 0; replica < first_of.size(); ++replica) {
    const std::size_t first = static_cast<std::size_t>(first_of[replica]) * program.actions;
    for (std::int32_t a = 0; a < program.actions; ++a) {
      if (program.kind[a] == EventKind::kCompute)
        busy[replica * ranks + program.rank[a]] += times.end[first + a] - times.start[first + a];
    }
  }
  return busy;
}

}  // namespace

NoisySteps simulate_noise(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network,
                          const NoiseSpec& noise, Sends sends, int threads) {
  if (noise.replicas < 1 || network.replicas % noise.replicas != 0) {
    throw SpecError(fmt::format("noise: {} replicas that draw apart, of {} in the network: give a divisor",
                                noise.replicas, network.replicas));
  }
  std::vector<int> drawn_as;
  for (int k = 0; k < network.replicas; ++k) drawn_as.push_back(k / (network.replicas / noise.replicas));
  const SharedNetwork shared = shared_network(network, lowered, costs, Replicas::kFolded, drawn_as);
  if (shared.plain) return simulate_noise(lowered, costs, noise, sends, threads);
  require_simulable(shared.network, lowered);
  require_drawable(noise, action_count(lowered) * shared.network.replicas);

  std::vector<int> drawn;  // [simulated replica] the replica that it draws as
  // [drawn replica] its first simulated replica
  std::vector<int> first_of(static_cast<std::size_t>(noise.replicas), -1);
  for (const int replica : shared.first_replica) {
    int& first = first_of[drawn_as[replica]];
    if (first < 0) first = static_cast<int>(drawn.size());
    drawn.push_back(drawn_as[replica]);
  }
  const NoiseShapes shapes = noise_shapes(noise);
  const EventProgram program = event_program(lowered, costs, shared.network, sends);
  const std::size_t ranks = lowered.ranks.size();
  return noisy_steps(noise, static_cast<int>(ranks), threads, [&](int run) {
    const NoiseDraws draws(shapes, noise.seed, std::max(run, 0), noise.replicas, static_cast<int>(ranks));
    const EventDraws by_instance(draws, lowered, program, drawn);
    const EventTimes times =
        event_times(lowered, program, shared.network, sends, {.draws = run < 0 ? nullptr : &by_instance});
    NoisyRun result{.busy = busy_of(program, times, first_of, ranks)};
    if (!times.end.empty()) result.makespan = *std::ranges::max_element(times.end);
    return result;
  });
}

}}  // namespace plumb::simulator
