#pragma once
// Where the parameters of a stage lie on a device: layer after layer, and of a layer those of its experts behind the
// others. Without expert parallelism they are one block, which its copies reduce and share out as a whole.

#include <cstdint>
#include <vector>

#include "executor/cpu/parameter_places.h"

namespace plumb {

/// `layers` are a tensor rank's.
ParameterPlaces device_parameter_places(const std::vector<Layer>& layers);

/// Elements of a layer's parameters that are no expert's; behind them parameter_offset()'s of experts begin.
std::int64_t common_elements(const Layer& layer);

}  // namespace plumb
