#include "simulator/network/conditioning.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace plumb { inline namespace simulator {
namespace {

constexpr int kRuns = 8;

/// The most that a run adds to each duration: picoseconds, or a share of the duration.
struct MostAdded {
  std::int64_t picoseconds = 0;
  double share = 0;
};

/// Returns the program with longer durations. Buckets inside hosts keep their offsets, which a longer host still holds.
EventProgram with_longer_durations(EventProgram program, const MostAdded& most, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto lengthen = [&](SimTime& time) {
    if (time == SimTime{0}) return;
    const double part = static_cast<double>(random() >> 11) * 0x1p-53;  // share of the most that may be added
    const double most_of_it = static_cast<double>(most.picoseconds) + most.share * static_cast<double>(time.count());
    time += at_most_latest(std::round(part * most_of_it));
  };
  for (SimTime& time : program.alone) lengthen(time);
  for (SimTime& time : program.latency) lengthen(time);
  for (Stretch& stretch : program.stretches.stretches) lengthen(stretch.lasts);
  return program;
}

StepSpread spread_of(const Schedule& lowered, const NetworkGradient& gradient, const MostAdded& most) {
  StepSpread spread{.shortest = SimTime::max()};
  for (int run = 1; run <= kRuns; ++run) {
    const EventProgram program = with_longer_durations(gradient.program, most, static_cast<std::uint64_t>(run));
    const EventTimes times = event_times(lowered, program, gradient.shared.network, gradient.sends);
    const SimTime makespan = times.end.empty() ? SimTime{0} : *std::ranges::max_element(times.end);
    spread.shortest = std::min(spread.shortest, makespan);
    spread.longest = std::max(spread.longest, makespan);
  }
  return spread;
}

}  // namespace

Conditioning conditioning_of(const Schedule& lowered, const NetworkGradient& gradient) {
  double sum_ps = 0;
  for (std::size_t i = 0; i < gradient.numbers.size(); ++i) sum_ps += std::abs(scaled_ps(gradient, i));
  Conditioning result;
  if (gradient.makespan > SimTime{0}) result.number = sum_ps / static_cast<double>(gradient.makespan.count());
  result.is_ill = !(result.number <= kMostConditioning);
  if (!result.is_ill) return result;
  result.runs = kRuns;
  result.by_picosecond = spread_of(lowered, gradient, {.picoseconds = 1});
  result.by_per_mille = spread_of(lowered, gradient, {.share = 1e-3});
  return result;
}

}}  // namespace plumb::simulator
