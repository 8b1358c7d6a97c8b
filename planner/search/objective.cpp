#include "planner/search/objective.h"

#include <fmt/format.h>

#include "planner/evaluate/noisy_evaluation.h"
#include "planner/spec/cluster_sites.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {

SimTime mean_busy(const Simulation& simulation) {
  SimTime all{0};
  for (const SimTime rank : simulation.busy) all += rank;
  return all / static_cast<std::int64_t>(simulation.busy.size());
}

SearchObjective least_cost(const ClusterSpec& cluster) {
  const OperatingSpec operation = mean_operation(cluster);
  if (!operation.usd_per_device_hour)
    throw SpecError(fmt::format(
        "cluster {} has no price: give --price, or operation.usd_per_device_hour in a cluster's file", cluster.name));
  const auto usd = [operation, devices = cluster.devices](SimTime step) {
    return step_usd(operation, devices, to_seconds(step));
  };
  return {.value = [usd](const Evaluation& evaluation) { return usd(evaluation.simulation.makespan); },
          .bound = [usd](const Layout&, const LeastTimes& least) { return usd(least.step); }};
}

SearchObjective least_energy(const ClusterSpec& cluster) {
  const OperatingSpec operation = mean_operation(cluster);
  if (!operation.busy_watts)
    throw SpecError(fmt::format(
        "cluster {} has no powers: give --power, or operation.idle_w and operation.busy_w in a cluster's file",
        cluster.name));
  const auto joules = [operation, devices = cluster.devices](const LeastTimes& times) {
    return step_joules(operation, devices, to_seconds(times.step), to_seconds(times.busy));
  };
  return {.value =
              [joules](const Evaluation& evaluation) {
                const Simulation& step = evaluation.simulation;
                return joules({.step = step.makespan, .busy = mean_busy(step)});
              },
          .bound = [joules](const Layout&, const LeastTimes& least) { return joules(least); }};
}

SearchObjective least_slow_step(const NoiseSpec& noise) {
  if (noise.runs < kLeastRuns)
    throw SpecError(
        fmt::format("--noise: the slowest of {} runs says too little of one step in twenty: give runs={} "
                    "or more",
                    noise.runs, kLeastRuns));
  return {.value = [noise](const Evaluation& evaluation) {
    constexpr double kMostSteps = 95;  // of a hundred
    return seconds(percentile(noisy_steps_of(evaluation, noise).makespans, kMostSteps));
  }};
}

}}  // namespace plumb::planner
