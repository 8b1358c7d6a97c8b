#include "executor/device/layers/device_parameters.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/executor/small_model.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("on a device a layer's parameters follow one another without a gap, its experts' behind the others") {
  const std::vector<Layer> model = shared_expert_model(2);
  const ParameterPlaces places = device_parameter_places(model);
  std::int64_t next = 0;
  for (const PlacedParameter& parameter : places.parameters) {
    CHECK(parameter.first == next);
    next += parameter.count;
    const std::string& name = parameter.tensor.name;
    CAPTURE(name);
    const std::int64_t in_layer = parameter.first - places.first_element[parameter.layer];
    const std::int64_t others = parameter.tensor.expert ? common_elements(model[parameter.layer]) : 0;
    CHECK(in_layer == others + parameter_offset(model[parameter.layer], name));
  }
  CHECK(next == places.first_element.back());
  std::size_t tensors = 0;
  for (const Layer& layer : model) tensors += layer_parameters(layer).size();
  CHECK(places.parameters.size() == tensors);
}
