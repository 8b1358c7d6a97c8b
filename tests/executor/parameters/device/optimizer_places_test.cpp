#include "executor/parameters/device/optimizer_places.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

ElementRange all_of(const ParameterPlaces& places) {
  return {0, places.first_element.back()};
}

/// Every own element is one part's, and no byte of the block is in two fields.
void check_cover(const OptimizerPlaces& state, std::int64_t elements) {
  std::int64_t next = 0;
  std::vector<StatePlace> fields;
  for (const UpdatePart& part : state.parts()) {
    CHECK(part.first == next);
    next += part.count;
    fields.insert(fields.end(), part.fields.begin(), part.fields.end());
  }
  CHECK(next == elements);
  std::ranges::sort(fields, {}, &StatePlace::first);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::int64_t end = i + 1 < fields.size() ? fields[i + 1].first : state.block_bytes();
    CHECK(fields[i].first + fields[i].count <= end);
  }
}

}  // namespace

TEST_CASE("parts of optimizers that go by element are as long as weight decay lets them") {
  const ParameterPlaces places = parameter_places(gpt_model(2));
  const std::int64_t elements = places.first_element.back();
  for (const OptimizerSettings& optimizer : std::vector<OptimizerSettings>{AdamW{}, Sgd{}, Lion{}}) {
    const OptimizerPlaces state(places, all_of(places), {.optimizer = optimizer});
    check_cover(state, elements);
    CHECK(state.state_bytes() == elements * 4 * (optimizer.index() == 0 ? 2 : 1));
    CHECK(state.workspace_bytes() == 0);
    for (std::size_t i = 1; i < state.parts().size(); ++i)
      CHECK(state.parts()[i].decays != state.parts()[i - 1].decays);
  }
}

TEST_CASE("a bias of picks is a part by itself, without state") {
  const ParameterPlaces places = parameter_places(balanced_pick_model(2));
  const std::int64_t elements = places.first_element.back(), biases = 2 * mixtral_block().experts;
  for (const OptimizerSettings& optimizer : std::vector<OptimizerSettings>{AdamW{}, AdamW8Bit{}}) {
    const OptimizerPlaces state(places, all_of(places), {.optimizer = optimizer});
    check_cover(state, elements);
    std::int64_t balanced = 0;
    for (const UpdatePart& part : state.parts())
      if (part.balance_rate > 0) {
        CHECK(part.fields.empty());
        balanced += part.count;
      }
    CHECK(balanced == biases);
  }
  const OptimizerPlaces state(places, all_of(places), {.optimizer = AdamW{}});
  CHECK(state.state_bytes() == (elements - biases) * 8);
}

TEST_CASE("a share of the elements has its own state alone") {
  const ParameterPlaces places = parameter_places(llama_model(1));
  const ElementRange own{100, 333};
  const OptimizerPlaces state(places, own, {.optimizer = AdamW{}, .is_half = true});
  check_cover(state, own.count);
  CHECK(state.state_bytes() == own.count * 12);
  CHECK(!state.has_master_on_host());
}

TEST_CASE("optimizers that need whole tensors have a part for each, with stacks of matrices") {
  const std::vector<Layer> model = mixtral_model(2, 1);
  for (const ParameterPart part : {ParameterPart::kCommon, ParameterPart::kExperts}) {
    const ParameterPlaces places = parameter_places(model, part);
    const OptimizerPlaces state(places, all_of(places), {.optimizer = Adafactor{}});
    check_cover(state, places.first_element.back());
    REQUIRE(state.parts().size() == places.parameters.size());
    for (std::size_t i = 0; i < places.parameters.size(); ++i) {
      const std::vector<std::int64_t>& shape = places.parameters[i].tensor.shape;
      const MatrixStackSize& size = state.parts()[i].matrices;
      CHECK(state.parts()[i].fields == state.fields(i));
      if (shape.size() == 1) CHECK(size.rows == 0);
      if (shape.size() > 1) CHECK(size.rows * size.columns * size.matrices == state.parts()[i].count);
      if (shape.size() == 3) CHECK(size.matrices == shape.front());
    }
    CHECK(state.workspace_bytes() == factor_square_bytes(part == ParameterPart::kExperts ? 4 : 1));
  }
}

TEST_CASE("a state on the host comes in parts that fit the window") {
  constexpr std::int64_t kWindow = 30000;
  const ParameterPlaces places = parameter_places({LinearLayer{.in = 100, .out = 120}});
  const std::int64_t elements = places.first_element.back();
  for (const OptimizerSettings& optimizer : std::vector<OptimizerSettings>{AdamW{}, AdamW8Bit{}, Lion{}})
    for (const bool is_half : {false, true}) {
      INFO("optimizer " << optimizer.index() << ", half " << is_half);
      const OptimizerPlaces state(
          places, all_of(places),
          {.optimizer = optimizer, .is_half = is_half, .is_on_host = true, .window_bytes = kWindow});
      check_cover(state, elements);
      CHECK(state.has_master_on_host() == is_half);
      CHECK(state.parts().size() > 1);
      CHECK(state.workspace_bytes() <= kWindow);
      CHECK(state.workspace_bytes() > kWindow / 4);
      for (const UpdatePart& part : state.parts()) {
        if (optimizer.index() == 1 && part.decays) CHECK(part.first % kQuantisationBlock == 0);
        const std::vector<StatePlace> here = OptimizerPlaces::places_in_window(part);
        CHECK(here.back().first + here.back().count <= state.workspace_bytes());
        if (is_half) CHECK(here.back().count == part.count * 4);
      }
    }
}

}  // namespace plumb::test
