#pragma once
// A step whose durations vary: the same schedule is timed many times, every duration multiplied by a random factor of
// mean 1. Ranks wait for each other, so the step grows although no action does on average: the slowdown of synchrony.
//
//   NoisySteps noisy = simulate_noise(lowered, costs, {.cv = 0.05, .runs = 1000});
//   slowdown_ratio(noisy), percentile(noisy.makespans, 99)
//
// The order is fixed. Where every transfer has its link to itself, each run is one pass over the compiled steps; with
// shared links it takes the event engine (network/network_noise.h). Data-parallel replicas draw apart and meet in each
// UNSHARD and REDUCE_GRAD, which starts when the last of them has come to it.

#include <cstdint>
#include <functional>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "schedules/time.h"
#include "simulator/noise/random_factor.h"

namespace plumb { inline namespace simulator {

struct NoiseSpec {
  double cv = 0;                ///< of each compute action by itself (an overlapped pair is one)
  double rank_cv = 0;           ///< of a rank: one factor in each run for all its compute actions
  double communication_cv = 0;  ///< of each message (bytes and latency), collective and move by itself
  Distribution distribution = Distribution::kLognormal;
  int runs = 1000;
  std::uint64_t seed = 1;
  /// Data-parallel pipelines. A tensor-parallel group is not drawn by rank: `cv` is that of its ranks together.
  int replicas = 1;
};

struct NoisySteps {
  SimTime quiet_makespan{0};        ///< without noise
  std::vector<SimTime> makespans;   ///< [run] the end of the last action of all replicas
  std::vector<SimTime> quiet_idle;  ///< [rank] makespan minus compute, without noise
  std::vector<Seconds> mean_idle;   ///< [rank] makespan minus compute, over all runs and replicas
};

/// Simulates the runs. `threads` that share the runs (0 for one a core) change nothing in the result. Throws as
/// simulate() without validation does, SpecError as factor_shape() does, and SpecError if there are no runs or no
/// replicas.
NoisySteps simulate_noise(const Schedule& lowered, const CostTable& costs, const NoiseSpec& noise,
                          Sends sends = Sends::kBuffered, int threads = 0);

/// Sums up the runs of any engine: `timed(run)` returns one run's makespan and its time of computing by [replica *
/// ranks + rank]. Run -1 is the one without noise, of any number of replicas that are alike. Throws as factor_shape()
/// does, and if there are no runs or no replicas.
struct NoisyRun {
  SimTime makespan{0};
  std::vector<SimTime> busy;
};
NoisySteps noisy_steps(const NoiseSpec& noise, int ranks, int threads, const std::function<NoisyRun(int)>& timed);

/// Throws SpecError, naming the most runs, if the runs of so many actions are more than kMostNoisyActions
/// (schedules/limits.h).
/// (schedules/limits.h).
void require_drawable(const NoiseSpec& noise, std::int64_t actions);

/// Returns the smallest of the times that at least `percent` of 100 of them do not exceed (nearest rank). `times` must
/// not be empty.
SimTime percentile(std::vector<SimTime> times, double percent);

/// These return the mean and the standard deviation of the makespans.
Seconds mean_step(const NoisySteps& noisy);
Seconds standard_deviation(const NoisySteps& noisy);  ///< of the sample; 0 for one run

/// Returns the mean makespan divided by the one without noise; 1 for a schedule that takes no time.
double slowdown_ratio(const NoisySteps& noisy);

}}  // namespace plumb::simulator
