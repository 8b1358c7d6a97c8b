#pragma once
// Checks that a list of layers is a model and that the data suit it.

#include <vector>

#include "executor/spec/run_spec.h"

namespace plumb { inline namespace executor {

/// A model that reads text is an embedding, transformer blocks and a head. A model that reads samples is an input,
/// convolutions, poolings, linear layers and MLPs in any order, and a loss. Throws SpecError (InputError for the data)
/// with the place and the remedy if `model` is neither, if a layer's sizes do not fit each other or the layer before,
/// or if the text or samples of `spec` do not fit the model.
void require_trainable(const std::vector<Layer>& model, const RunSpec& spec);

}}  // namespace plumb::executor
