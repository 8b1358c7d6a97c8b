#pragma once
// A norm of a device's layer: the places of its parameters, and the statistics that its forward keeps of each row.

#include <cstdint>
#include <string>

#include "executor/cpu/layers/layer.h"
#include "executor/device/layers/device_layer.h"

namespace plumb { inline namespace executor {

struct DeviceLayerNorm {
  std::int64_t gain = -1;  ///< elements from the layer's first parameter; -1: none
  std::int64_t bias = -1;
  DeviceTensor mean, rstd;  ///< [rows], fp32

  /// Returns the elements of its parameters; the bias lies behind the gain.
  std::int64_t elements(std::int64_t columns) const { return bias < 0 ? columns : 2 * columns; }
};

/// Places a norm's statistics. `name` is that of kernels/layer.h: "norm1", "norm2" or "norm".
inline DeviceLayerNorm place_norm(const Layer& layer, const std::string& name, NormKind kind, std::int64_t rows,
                                  DeviceLayerBytes& bytes) {
  DeviceLayerNorm norm;
  norm.gain = parameter_offset(layer, name + ".gain");
  norm.bias = parameter_offset(layer, name + ".bias");
  norm.rstd = place_tensor(DevicePlace::kEarly, bytes.early, rows * std::int64_t{sizeof(float)});
  if (kind == NormKind::kLayerNorm)
    norm.mean = place_tensor(DevicePlace::kEarly, bytes.early, rows * std::int64_t{sizeof(float)});
  return norm;
}

inline DeviceNorm norm_in(const DeviceLayerCall& call, const DeviceLayerNorm& norm) {
  return {.gain = call.vector(norm.gain),
          .bias = call.vector(norm.bias),
          .mean = floats_of(call, norm.mean),
          .rstd = floats_of(call, norm.rstd)};
}

}}  // namespace plumb::executor
