#pragma once
// Initial weights. Each element is drawn by a counter generator keyed by seed, layer, parameter and element, so that
// the weights are the same under every layout. Matrices are normal with deviation 1/sqrt(in), before a ReLU sqrt(2/in)
// (He et al. 2015); tables and the head's projection with deviation 0.02 (Radford et al. 2019). A tied head draws the
// embedding's numbers. Other parameters begin as ParameterTensor::initial says.

#include <cstdint>
#include <span>

#include "executor/spec/division/tensor_division.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

/// Fills `weights` with the parameters of one part of the seat's share of divide_layer(layer, seat.ranks), one after
/// the other; of the experts with the share of `experts`. The padding of a vocabulary is 0. `layer_number` counts from
/// the model's first layer, the embedding.
void fill_initial_weights(std::span<float> weights, const Layer& layer, int layer_number, std::uint64_t seed,
                          const TensorSeat& seat = {}, ParameterPart part = ParameterPart::kCommon,
                          const ExpertSeat& experts = {});

}}  // namespace plumb::executor
