#pragma once
// Networks that are no transformers, as lists of layers by name.
//
//   layer_model("vgg-16", 10)   // on 224 x 224, with ten classes

#include <string>
#include <string_view>
#include <vector>

#include "kernels/layer.h"

namespace plumb {

/// alexnet (Krizhevsky et al. 2012: two groups, overlapping pooling, dropout in the two large linear layers; without
/// its local response normalisation), vgg-11, vgg-16, vgg-19 (Simonyan & Zisserman 2015, columns A, D and E), all on
/// images of 224 x 224; alexnet-32, the same shape of network made small for images of 32 x 32; mlp, four residual
/// blocks with GELU and a squared error.
const std::vector<std::string>& layer_model_names();
bool is_layer_model(std::string_view name);

/// The layers of a network that is_layer_model, with so many classes (the MLP: numbers of a target).
std::vector<Layer> layer_model(std::string_view name, std::int64_t outputs);

}  // namespace plumb
