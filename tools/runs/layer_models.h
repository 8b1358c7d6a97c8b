#pragma once
// The presets that the cpu backend trains without a plan are layer graphs that are chains of the executor's layers.
//
//   layer_model("vgg-16", 10)   // on 224 x 224, with ten classes

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/layer.h"

namespace plumb { inline namespace tools {

/// Returns alexnet, alexnet-32, alexnet-one-tower, mlp, vgg-11, vgg-16 and vgg-19.
const std::vector<std::string>& layer_model_names();
bool is_layer_model(std::string_view name);

/// Returns the layers of a network with `outputs` classes (of the MLP: numbers of a target). is_layer_model(name)
/// holds.
std::vector<Layer> layer_model(std::string_view name, std::int64_t outputs);

}}  // namespace plumb::tools
