#pragma once
// Conditions that a RunSpec must meet before threads start, and values that follow from it.

#include <vector>

#include "executor/replay_plan.h"
#include "executor/run_spec.h"

namespace plumb { inline namespace executor {

/// Throws SpecError (InputError for the data and the checkpoint) with the place and the remedy if numbers are out of
/// range, if the stages do not match the schedule or do not form a model (require_trainable), if ranks cannot divide a
/// layer or its tokens as the grid asks, or if the checkpoint to resume from is of another training.
void require_runnable(const RunSpec& spec);

/// Returns the ranks of the run.
RankGrid rank_grid_of(const RunSpec& spec);

/// Returns the number of each stage's first layer in the model. [stage]
std::vector<int> first_layers(const RunSpec& spec);

/// Returns how many layers each gradient bucket has: RunSpec::bucket_layers, or as equal numbers as can be.
/// [stage][bucket]
std::vector<std::vector<int>> bucket_layers(const RunSpec& spec);

/// Returns what the run asks of the replay besides its schedule.
ReplayPolicy replay_policy(const RunSpec& spec);

/// Returns the stages that hold the two ends of a tied table, one pair a lane; empty if the head is not tied.
std::vector<TiedStages> tied_stages(const RunSpec& spec);

}}  // namespace plumb::executor
