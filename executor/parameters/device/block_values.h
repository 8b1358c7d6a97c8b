#pragma once
// A block's values on the host in the terms of the model: as a training begins, as tests read them, and as a checkpoint
// has them. Checkpoints are those of the cpu backend, so that a training can go on with either.

#include <cstddef>
#include <span>
#include <vector>

#include "executor/parameters/device/block_layout.h"
#include "executor/parameters/model_values.h"
#include "executor/parameters/training_state.h"

namespace plumb { inline namespace executor {

/// Returns the weights [elements] with which the run begins: the initial ones, or those of the state that it resumes.
std::vector<float> first_weights(const BlockLayout& layout);

/// Writes own values [own elements], times `factor`, into the model's where this rank speaks for them. Padding of a
/// vocabulary is nobody's; for elements that all tensor ranks have the first one speaks.
void copy_values(const BlockLayout& layout, ModelValues& model, std::span<const float> own, float factor);

/// Writes the optimizer's state that the run resumes over `state` [bytes of the optimizer's block].
void restore_state(const BlockLayout& layout, std::span<std::byte> state);

/// Writes own weights [own elements] and the optimizer's state into a checkpoint, where this copy speaks for them.
void save_values(const BlockLayout& layout, TrainingState& saved, std::span<const float> weights,
                 std::span<const std::byte> state);

}}  // namespace plumb::executor
