#pragma once
// A step whose durations vary: the same schedule timed many times, every duration multiplied by a random factor of mean
// 1. Ranks wait for each other, so the step grows although no action does on average: the slowdown of synchrony.
//
//   NoisySteps noisy = simulate_noise(lowered, costs, {.cv = 0.05, .runs = 1000});
//   slowdown_ratio(noisy), percentile(noisy.makespans, 99)
//
// Order is fixed. Where every transfer has its link to itself, one pass over the compiled steps a run; with shared
// links the event engine (network/network_noise.h). Data-parallel replicas draw apart and meet in each UNSHARD and
// REDUCE_GRAD, which starts when the last of them has come to it.

#include <cstdint>
#include <functional>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "schedules/time.h"
#include "simulator/noise/random_factor.h"

namespace plumb { inline namespace simulator {

struct NoiseSpec {
  double cv = 0;                ///< of each compute action (an overlapped pair is one), by itself
  double rank_cv = 0;           ///< of a rank: one factor a run for all its compute actions
  double communication_cv = 0;  ///< of each message (bytes and latency), collective and move, by itself
  Distribution distribution = Distribution::kLognormal;
  int runs = 1000;
  std::uint64_t seed = 1;
  int replicas = 1;  ///< data-parallel pipelines; no TP group: `cv` is that of its ranks together
};

struct NoisySteps {
  SimTime quiet_makespan{0};        ///< without noise
  std::vector<SimTime> makespans;   ///< [run] the end of the last action of all replicas
  std::vector<SimTime> quiet_idle;  ///< [rank] makespan minus compute, without noise
  std::vector<Seconds> mean_idle;   ///< [rank] the same over all runs and replicas
};

/// `threads` that share the runs (0: one a core) change nothing in the result. Throws as simulate() without validation
/// does, SpecError as factor_shape() and if there are no runs or no replicas.
NoisySteps simulate_noise(const Schedule& lowered, const CostTable& costs, const NoiseSpec& noise,
                          Sends sends = Sends::kBuffered, int threads = 0);

/// Sums of the runs of any engine: `timed(run)` is one run's makespan and its time of computing by [replica * ranks +
/// rank]; run -1 is the one without noise, of any number of replicas that are alike. Throws as factor_shape() and if
/// there are no runs or no replicas.
struct NoisyRun {
  SimTime makespan{0};
  std::vector<SimTime> busy;
};
NoisySteps noisy_steps(const NoiseSpec& noise, int ranks, int threads, const std::function<NoisyRun(int)>& timed);

/// Throws SpecError, naming the most runs, if those of so many actions are more than kMostNoisyActions
/// (schedules/limits.h).
void require_drawable(const NoiseSpec& noise, std::int64_t actions);

/// The smallest of the times that at least `percent` of 100 of them do not exceed (nearest rank). `times` is not empty.
SimTime percentile(std::vector<SimTime> times, double percent);

/// Of makespans.
Seconds mean_step(const NoisySteps& noisy);
Seconds standard_deviation(const NoisySteps& noisy);  ///< of the sample; 0 of one run

/// The mean makespan by the one without noise; 1 for a schedule that takes no time.
double slowdown_ratio(const NoisySteps& noisy);

}}  // namespace plumb::simulator
