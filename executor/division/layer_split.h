#pragma once
// Layers to stages for any list of layers, as DeepSpeed's PipelineModule splits them (Microsoft 2020).
//
//   split_layers(model, 4, "parameters")        // stages of nearly equal parameters
//   split_layers(model, 4, "type:convolution")  // of nearly as many convolutions
//   split_layers(model, 4, "3,2,2,4")           // the user's own numbers

#include <string_view>
#include <vector>

#include "kernels/layer/layer.h"

namespace plumb { inline namespace executor {

/// [stage][layer] consecutive layers, every stage with at least one. An input counts with the layer behind it and a
/// loss with the one before it. `rule`: "uniform" (as many layers each, larger stages first), "parameters" or
/// "type:REGEX" (of all splits one whose largest stage has the fewest parameters, or layers whose kind's name the
/// expression finds; case does not matter), or a number of layers for each stage. Throws SpecError if there are fewer
/// layers than stages, the expression is none or finds no layer, or the numbers are not one of 1 or more for each stage
/// or do not sum up to the layers.
std::vector<std::vector<Layer>> split_layers(const std::vector<Layer>& model, int stages, std::string_view rule);

}}  // namespace plumb::executor
