#pragma once
// From a plan to what the executor runs: the only bridge between planner and executor.

#include <cstdint>
#include <string>

#include "executor/run_spec.h"
#include "planner/search/plan.h"

namespace plumb {

struct RunSettings {
  int steps = 1;
  std::uint64_t seed = 1;
  std::string text;       ///< the bytes to train on
  std::string text_name;  ///< their file
};

/// The spec that replays exactly the schedule that was simulated (`predicted` is the plan's prediction).
/// Throws SpecError naming what the cpu backend does not run: tensor parallelism, sharding over replicas, selective
/// recomputation, a precision other than fp32.
RunSpec lower_plan(const Plan& plan, const Predicted& predicted, const RunSettings& settings);

}  // namespace plumb
