#pragma once
// The layers, on a device, of models that read images or vectors of numbers; each kind has a file. make_device_layer()
// calls these functions. A micro-batch has T samples.

#include <cstdint>
#include <memory>

#include "executor/device/layers/device_layer.h"

namespace plumb { inline namespace executor {

std::unique_ptr<DeviceLayer> make_device_input(const InputLayer& layer, const LayerWork& work,
                                               std::int64_t element_bytes);
std::unique_ptr<DeviceLayer> make_device_convolution(const ConvolutionLayer& layer, const LayerWork& work,
                                                     std::int64_t element_bytes);
std::unique_ptr<DeviceLayer> make_device_pooling(const PoolingLayer& layer, const LayerWork& work,
                                                 std::int64_t element_bytes);
std::unique_ptr<DeviceLayer> make_device_linear(const LinearLayer& layer, const LayerWork& work,
                                                std::int64_t element_bytes);
std::unique_ptr<DeviceLayer> make_device_mlp(const MlpLayer& layer, const LayerWork& work, std::int64_t element_bytes);
std::unique_ptr<DeviceLayer> make_device_loss(const LossLayer& layer, const LayerWork& work,
                                              std::int64_t element_bytes);

}}  // namespace plumb::executor
