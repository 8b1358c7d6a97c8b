#include "executor/cpu/parameters.h"

#include <doctest/doctest.h>

#include "executor/cpu/initial_weights.h"
#include "kernels/cpu/adamw.h"
#include "tests/executor/small_model.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("parameters lie one after the other, layer by layer, in the order of layer_parameters") {
  const std::vector<Layer> layers = gpt_model(2);
  const ParameterPlaces places = parameter_places(layers);
  std::int64_t next = 0;
  std::size_t index = 0;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    CHECK(places.first_element[layer] == next);
    for (const ParameterTensor& tensor : layer_parameters(layers[layer])) {
      const PlacedParameter& placed = places.parameters.at(index++);
      CHECK(placed.layer == layer);
      CHECK(placed.tensor == tensor);
      CHECK(placed.first == next);
      CHECK(placed.count == element_count(tensor));
      next += placed.count;
    }
  }
  CHECK(places.parameters.size() == index);
  CHECK(places.first_element.back() == next);
}

TEST_CASE("a step is AdamW's, with decay for matrices only, and leaves zero gradients") {
  const TransformerLayer block = gpt_block();
  const CpuParameterOptions options{.layers = {block}, .first_layer = 3, .seed = 5};
  TensorPool pool;
  CpuParameters parameters(options, pool);
  parameters.begin({});
  std::vector<float> weights(static_cast<std::size_t>(parameter_count(block)));
  fill_initial_weights(weights, block, 3, 5);
  CHECK(std::ranges::equal(parameters.newest_weights(), weights));
  std::vector<float> gradients(weights.size()), first(weights.size(), 0), second(weights.size(), 0);
  for (std::int64_t step = 1; step <= 2; ++step) {
    for (std::size_t i = 0; i < gradients.size(); ++i)
      parameters.all_gradients()[i] = gradients[i] = 0.01F * float(int(i % 11) - 5);
    parameters.step(CpuKernelSet());
    for (const PlacedParameter& placed : parameter_places({block}).parameters) {
      AdamW optimizer;
      if (placed.tensor.shape.size() == 1) optimizer.weight_decay = 0;
      adamw_update(weights.data() + placed.first, gradients.data() + placed.first, first.data() + placed.first,
                   second.data() + placed.first, placed.count, optimizer, step);
    }
    CHECK(std::ranges::equal(parameters.newest_weights(), weights));
    CHECK(std::ranges::all_of(parameters.all_gradients(), [](float g) { return g == 0; }));
  }
}

TEST_CASE("a version that is in use stays as it was, and goes with its last release") {
  TensorPool pool;
  CpuParameters parameters({.layers = {llama_block()}}, pool);
  parameters.begin({2, 1});
  const float* before = parameters.weights(0, 0);
  const std::vector<float> values(before, before + parameter_count(llama_block()));
  std::ranges::fill(parameters.all_gradients(), 1.0F);
  parameters.step(CpuKernelSet());
  CHECK(parameters.held_versions() == 2);
  CHECK(std::ranges::equal(values, std::span(parameters.weights(0, 0), values.size())));
  CHECK(parameters.weights(1, 0)[0] != values[0]);
  parameters.release(0);
  CHECK(parameters.held_versions() == 2);
  parameters.release(0);
  CHECK(parameters.held_versions() == 1);
  parameters.release(1);
  CHECK(parameters.held_versions() == 1);  // the newest stays
  parameters.step(CpuKernelSet());
  CHECK(parameters.held_versions() == 1);  // nobody needs version 1: updated in place
}
