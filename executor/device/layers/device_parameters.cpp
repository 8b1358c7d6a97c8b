#include "executor/device/layers/device_parameters.h"

#include <utility>

namespace plumb {

ParameterPlaces device_parameter_places(const std::vector<Layer>& layers) {
  const ParameterPlaces parts[] = {parameter_places(layers, ParameterPart::kCommon),
                                   parameter_places(layers, ParameterPart::kExperts)};
  ParameterPlaces places;
  std::int64_t first = 0;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    places.first_element.push_back(first);
    for (const ParameterPlaces& part : parts)
      for (PlacedParameter parameter : part.parameters) {
        if (parameter.layer != layer) continue;
        parameter.first = first;
        first += parameter.count;
        places.parameters.push_back(std::move(parameter));
      }
  }
  places.first_element.push_back(first);
  return places;
}

std::int64_t common_elements(const Layer& layer) {
  return parameter_places({layer}, ParameterPart::kCommon).first_element.back();
}

}  // namespace plumb
