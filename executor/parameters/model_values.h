#pragma once
// Values of a whole model's parameters, which no layout changes: its weights, or their gradients.

#include <vector>

#include "executor/spec/run_spec.h"

namespace plumb { inline namespace executor {

/// Values of each parameter of the model: [layer of the model][parameter, as layer_parameters() lists them][element].
using ModelValues = std::vector<std::vector<std::vector<float>>>;

/// Returns zeros in the shape of the model's parameters. first_layer: [stage] number of its first layer in the model.
ModelValues room_for_values(const RunSpec& spec, const std::vector<int>& first_layer);

}}  // namespace plumb::executor
