#include "executor/layers/device/packed_vectors.h"

#include <doctest/doctest.h>

#include <functional>
#include <numeric>
#include <vector>

#include "tests/executor/machines/host_kernels.h"
#include "tests/executor/small_model.h"

namespace plumb::test {

TEST_CASE("packed vectors are the parameters of one dimension, found by where they lie in the stage") {
  const ParameterPlaces places = parameter_places(gpt_model(2));
  const PackedVectors vectors(places);
  std::vector<float> master(static_cast<std::size_t>(places.first_element.back()));
  std::iota(master.begin(), master.end(), 1.0F);
  std::vector<float> packed(static_cast<std::size_t>(vectors.elements()), 0.0F);

  const auto kernels = make_host_kernels({}, [](const std::function<void()>& work) { work(); });
  vectors.pack(*kernels, packed.data(), master.data());

  std::int64_t expected = 0;
  for (const PlacedParameter& parameter : places.parameters) {
    if (parameter.tensor.shape.size() > 1) continue;
    expected += parameter.count;
    const std::int64_t place = vectors.place_of(parameter.first);
    for (std::int64_t i = 0; i < parameter.count; ++i)
      CHECK(packed.at(static_cast<std::size_t>(place + i)) == master[static_cast<std::size_t>(parameter.first + i)]);
  }
  CHECK(vectors.elements() == expected);
  CHECK(expected > 0);
}

}  // namespace plumb::test
