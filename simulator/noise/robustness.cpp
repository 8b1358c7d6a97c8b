#include "simulator/noise/robustness.h"

#include "simulator/noise/noise.h"

namespace plumb { inline namespace simulator {
namespace {

CostTable with_slow_rank(CostTable costs, const Schedule& schedule, int rank, double factor) {
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    if (schedule.stages[s].rank != rank) continue;
    for (SegmentsByPart& parts : costs.stages[s].segments) {
      for (std::vector<Segment>& part : parts) {
        for (Segment& segment : part) {
          if (segment.kind == Segment::Kind::kCompute) segment.seconds *= factor;
        }
      }
    }
  }
  return costs;
}

}  // namespace

Robustness robustness(const Schedule& lowered, const CostTable& costs, const Disturbance& disturbance) {
  const auto simulated = [&](const CostTable& table, const NoiseSpec& noise) {
    return simulate_noise(lowered, table, noise, Sends::kBuffered, 1);
  };
  const NoisySteps noisy = simulated(costs, {.cv = disturbance.cv, .runs = disturbance.runs});
  Robustness result{.noise_ratio = slowdown_ratio(noisy)};
  if (noisy.quiet_makespan == SimTime{0}) return result;
  for (int r = 0; r < static_cast<int>(lowered.ranks.size()); ++r) {
    const NoisySteps slow = simulated(with_slow_rank(costs, lowered, r, disturbance.slow_factor), {.runs = 1});
    const double ratio = to_seconds(slow.quiet_makespan) / to_seconds(noisy.quiet_makespan);
    if (ratio > result.slow_ratio) result.slow_ratio = ratio, result.slow_rank = r;
  }
  return result;
}

}}  // namespace plumb::simulator
