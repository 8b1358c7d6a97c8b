#pragma once
// Noise where transfers share links: the event engine simulates every run.
//
//   NoisySteps noisy = simulate_noise(lowered, costs, network, {.cv = 0.05, .runs = 200, .replicas = data});
//
// The replicas of a network are all ranks of a pipeline rank: `noise.replicas` data-parallel ones of equally many ranks
// each, which draw as one. `cv` and `rank_cv` are of computing, `communication_cv` also of the collectives inside
// actions. A transfer that takes longer has more to move, at the rates of all others. Where nothing can share, the runs
// are those of simulator/noise/noise.h, draw by draw.

#include "simulator/network/simulate_network.h"
#include "simulator/noise/noise.h"

namespace plumb { inline namespace simulator {

/// Throws as simulate() with a network and simulate_noise() without one do, and SpecError if the network's replicas are
/// no multiple of the noise's.
NoisySteps simulate_noise(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network,
                          const NoiseSpec& noise, Sends sends = Sends::kBuffered, int threads = 0);

}}  // namespace plumb::simulator
