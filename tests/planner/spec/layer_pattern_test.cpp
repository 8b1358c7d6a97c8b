#include "planner/spec/layer_pattern.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("a word a layer says what mixes tokens in it and what feeds forward") {
  const std::vector<LayerParts> layers = layer_pattern("M- ME *  M*-", "m");
  REQUIRE(layers.size() == 4);
  CHECK(layers[0] == LayerParts{.states = true, .mlp = true});
  CHECK(layers[1] == LayerParts{.states = true, .experts = true});
  CHECK(layers[2] == LayerParts{.attention = true});
  CHECK(layers[3] == LayerParts{.attention = true, .states = true, .mlp = true});
}

TEST_CASE("the text of layers is their shortest period") {
  const auto again = [](const char* text) { return layer_pattern_text(layer_pattern(text, "m")); };
  CHECK(again("M- ME M- ME") == "M- ME");
  CHECK(again("*- *- *-") == "*-");
  CHECK(again("-M E*") == "M- *E");
  CHECK(again("M - M - *") == "M - M - *");
}

TEST_CASE("a word that is no layer is refused with its place") {
  const auto refused = [](const char* text, const char* says) {
    check_refused<SpecError>([&] { layer_pattern(text, "model.json, pattern"); }, "model.json, pattern", says);
  };
  refused("", "no layers");
  refused("Mx", "'x' is no kind of layer");
  refused("MM", "one part twice");
  refused("*-E", "an MLP beside experts");
}

}  // namespace plumb::test
