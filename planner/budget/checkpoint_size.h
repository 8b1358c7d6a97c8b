#pragma once
// The bytes that a training must keep to go on after an interruption.

#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

/// Returns the bytes of weights in the computing precision and of the optimizer's state with its fp32 copy of them, of
/// all ranks together: 14 a parameter for bf16 with AdamW. Gradients and activations are not kept.
double checkpoint_bytes(const ModelSpec& model, const TrainingSpec& training);

}}  // namespace plumb::planner
