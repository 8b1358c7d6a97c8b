#pragma once
// The data of a micro-batch that a layer loads into memory of its own: tokens, targets, samples, labels.

#include "executor/layers/host/layer_call.h"

namespace plumb { inline namespace executor {

/// Fills a tensor of Origin::kLoaded for the layer that reads or makes it.
void load_data(Tensor& tensor, const Layer& layer, const LayerCall& call);

}}  // namespace plumb::executor
