#include "executor/layers/parameter_places.h"

#include <doctest/doctest.h>

#include "tests/executor/small_model.h"

namespace plumb::test {

TEST_CASE("parameters lie one after the other, layer by layer, in the order of layer_parameters") {
  const std::vector<Layer> layers = gpt_model(2);
  const ParameterPlaces places = parameter_places(layers);
  std::int64_t next = 0;
  std::size_t number = 0;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    CHECK(places.first_element[layer] == next);
    std::size_t index = 0;
    for (const ParameterTensor& tensor : layer_parameters(layers[layer])) {
      const PlacedParameter& placed = places.parameters.at(number++);
      CHECK(placed.layer == layer);
      CHECK(placed.index == index++);
      CHECK(placed.tensor == tensor);
      CHECK(placed.first == next);
      CHECK(placed.count == element_count(tensor));
      next += placed.count;
    }
  }
  CHECK(places.parameters.size() == number);
  CHECK(places.first_element.back() == next);
}

TEST_CASE("the pieces in neighbouring ranges are all parameters, each element once and in order") {
  const ParameterPlaces places = parameter_places(gpt_model(1));
  const std::int64_t elements = places.first_element.back();
  for (const int members : {1, 2, 3, 7}) {
    const std::vector<std::int64_t> bounds = shares_by_element(elements, members);
    std::int64_t next = 0;
    for (int member = 0; member < members; ++member) {
      const ElementRange own = ParameterShares{.bounds = bounds, .member = member}.own();
      for (const ParameterPiece& piece : pieces_in(places, own)) {
        CHECK(piece.count >= 1);
        CHECK(own.first + piece.first_in_range == next);
        CHECK(places.parameters[piece.parameter].first + piece.first_in_tensor == next);
        next += piece.count;
      }
    }
    CHECK(next == elements);
  }
}

TEST_CASE("shares by element are equal but for the last, and even") {
  CHECK(shares_by_element(12, 3) == std::vector<std::int64_t>{0, 4, 8, 12});
  CHECK(shares_by_element(13, 3) == std::vector<std::int64_t>{0, 6, 12, 13});
  CHECK(shares_by_element(2, 3) == std::vector<std::int64_t>{0, 2, 2, 2});
  CHECK(shares_by_element(7, 1) == std::vector<std::int64_t>{0, 7});
}

TEST_CASE("shares by layer are whole layers, as near to equal shares as these allow") {
  ParameterPlaces places{.first_element = {0, 10, 14, 18, 30}};
  CHECK(shares_by_layer(places, 2) == std::vector<std::int64_t>{0, 14, 30});
  CHECK(shares_by_layer(places, 3) == std::vector<std::int64_t>{0, 10, 18, 30});
  CHECK(shares_by_layer(places, 1) == std::vector<std::int64_t>{0, 30});
}

}  // namespace plumb::test
