#pragma once
// What must hold of a RunSpec before threads start.

#include <vector>

#include "executor/replay_plan.h"
#include "executor/run_spec.h"

namespace plumb { inline namespace executor {

/// Throws SpecError (InputError for the text) with the place and the remedy if numbers are out of range, the stages do
/// not match the schedule or do not form a model (an embedding, blocks, a head, one hidden size), a block's sizes do
/// not fit each other, or the text is too short or has bytes beyond the vocabulary.
void require_runnable(const RunSpec& spec);

/// The ranks of the run.
RankGrid rank_grid_of(const RunSpec& spec);

/// Number of the stage's first layer in the model. [stage]
std::vector<int> first_layers(const RunSpec& spec);

/// Layers of each gradient bucket, as RunSpec::bucket_layers or as equal as can be. [stage][bucket]
std::vector<std::vector<int>> bucket_layers(const RunSpec& spec);

/// What the replay has to do besides the schedule.
ReplayPolicy replay_policy(const RunSpec& spec);

/// The stages that hold the two ends of a tied table, by lane; empty if the head is not tied.
std::vector<TiedStages> tied_stages(const RunSpec& spec);

}}  // namespace plumb::executor
