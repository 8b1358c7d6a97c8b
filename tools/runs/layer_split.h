#pragma once
// Splits any list of layers into stages, as DeepSpeed's PipelineModule does (Microsoft 2020).
//
//   split_layers(model, 4, "parameters")        // stages of nearly equal parameters
//   split_layers(model, 4, "type:convolution")  // stages of nearly as many convolutions
//   split_layers(model, 4, "3,2,2,4")           // the user's own numbers of layers

#include <string_view>
#include <vector>

#include "kernels/layer.h"

namespace plumb { inline namespace tools {

/// Returns [stage][layer] consecutive layers; every stage has at least one. An input counts with the layer behind it
/// and a loss with the layer before it. `rule` is one of
///
///   "uniform"       as many layers each, larger stages first
///   "parameters"    a split whose largest stage has the fewest parameters
///   "type:REGEX"    a split whose largest stage has the fewest layers whose kind's name the expression finds, in upper
///                   or lower case
///   "N,N,..."       a number of layers for each stage
///
/// Throws SpecError if there are fewer layers than stages, if the expression is not one or finds no layer, or if the
/// numbers are not one of 1 or more for each stage or do not sum up to the layers.
std::vector<std::vector<Layer>> split_layers(const std::vector<Layer>& model, int stages, std::string_view rule);

}}  // namespace plumb::tools
