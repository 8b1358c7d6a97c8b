#pragma once
// A layer on a device that runs its program (kernels/layer/program/program.h): each step of a pass enqueues its kernel,
// over the places that the program's tensors have (kernels/layer/program/places.h).

#include <cstdint>
#include <memory>

#include "executor/device/layers/device_layer.h"

namespace plumb { inline namespace executor {

/// Makes a layer on images or vectors. Asserts that `layer` is one of these: its program then has no exchanges.
std::unique_ptr<DeviceLayer> make_program_layer(const Layer& layer, const LayerWork& work, std::int64_t element_bytes);

}}  // namespace plumb::executor
