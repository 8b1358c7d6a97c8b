#pragma once
// A layout's step whose durations vary (simulator/noise/noise.h), on the links that its evaluation had.

#include "planner/evaluate/evaluation.h"
#include "simulator/noise/noise.h"

namespace plumb { inline namespace planner {

/// Simulates the runs; the layout's replicas draw apart, whatever `noise.replicas` says. Throws as simulate_noise does,
/// and SpecError if the evaluation is of a run that is so long that it has no actions.
NoisySteps noisy_steps_of(const Evaluation& evaluation, NoiseSpec noise, Sends sends = Sends::kBuffered);

}}  // namespace plumb::planner
