#include "executor/parameters/model_values.h"

#include <algorithm>

namespace plumb { inline namespace executor {

ModelValues room_for_values(const RunSpec& spec, const std::vector<int>& first_layer) {
  ModelValues values;
  for (std::size_t stage = 0; stage < first_layer.size(); ++stage)
    for (std::size_t i = 0; i < spec.stage_layers[stage].size(); ++i) {
      const std::size_t number = static_cast<std::size_t>(first_layer[stage]) + i;
      values.resize(std::max(values.size(), number + 1));
      values[number].clear();
      for (const ParameterTensor& parameter : layer_parameters(spec.stage_layers[stage][i]))
        values[number].emplace_back(static_cast<std::size_t>(element_count(parameter)));
    }
  return values;
}

}}  // namespace plumb::executor
