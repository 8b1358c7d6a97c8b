#include "executor/parameters/optimizer_state.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

std::int64_t bytes_of(const OptimizerSettings& optimizer, const ParameterTensor& tensor) {
  std::int64_t bytes = 0;
  for (const OptimizerField& field : optimizer_fields(optimizer, tensor, element_count(tensor))) bytes += field.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("the state of each optimizer has the bytes of its paper") {
  const ParameterTensor matrix{"w", {30, 100}}, vector{"b", {100}}, experts{"e", {4, 5, 6}};
  CHECK(bytes_of(AdamW{}, matrix) == 8 * 3000);
  CHECK(bytes_of(Sgd{}, matrix) == 4 * 3000);
  CHECK(bytes_of(Lion{}, matrix) == 4 * 3000);
  CHECK(bytes_of(AdamW8Bit{}, matrix) == 2 * 3000 + 2 * 4 * 2);  // two blocks of 2048
  CHECK(bytes_of(Adafactor{}, matrix) == 4 * (30 + 100));
  CHECK(bytes_of(Adafactor{}, vector) == 4 * 100);
  CHECK(bytes_of(Adafactor{}, experts) == 4 * 4 * (5 + 6));
}

TEST_CASE("no optimizer has a state of a bias of picks, which moves against the sign of the excess") {
  const ParameterTensor bias{.name = "router.selection_bias", .shape = {3}, .balance_rate = 0.25};
  for (const OptimizerSettings& optimizer : kAllOptimizers) {
    CAPTURE(optimizer.index());
    CHECK(bytes_of(optimizer, bias) == 0);
    std::vector<Tensor> state;
    std::vector<float> weights = {1, 1, 1}, gradients = {8, 0, -0.5F};
    update_parameter(
        CpuKernelSet(), optimizer,
        {.tensor = bias, .weights = weights.data(), .gradients = gradients.data(), .elements = 3, .state = state}, 7);
    CHECK(weights == std::vector<float>{0.75F, 1, 1.25F});
    CHECK(gradients == std::vector<float>(3));
  }
}

TEST_CASE("every optimizer moves a bowl's point towards its middle, and zeroes the gradients") {
  const ParameterTensor tensor{"w", {3, 4}};
  for (const OptimizerSettings& optimizer : kAllOptimizers) {
    CAPTURE(optimizer.index());
    TensorPool pool;
    std::vector<Tensor> state = fresh_state(optimizer, tensor, 12, pool);
    std::vector<float> weights(12, 1.0F), gradients(12);
    for (std::int64_t step = 1; step <= 200; ++step) {
      gradients = weights;  // gradient of |w|^2 / 2
      update_parameter(
          CpuKernelSet(), optimizer,
          {.tensor = tensor, .weights = weights.data(), .gradients = gradients.data(), .elements = 12, .state = state},
          step);
      CHECK(std::ranges::all_of(gradients, [](float g) { return g == 0; }));
    }
    for (const float weight : weights) CHECK(std::abs(weight) < 0.99F);
  }
}

TEST_CASE("an elementwise optimizer updates a tensor in two pieces as in one, bitwise") {
  const ParameterTensor tensor{"w", {4, 5}};
  for (const OptimizerSettings& optimizer : kAllOptimizers) {
    if (!is_elementwise(optimizer)) continue;
    TensorPool pool;
    std::vector<Tensor> whole = fresh_state(optimizer, tensor, 20, pool);
    std::vector<Tensor> head = fresh_state(optimizer, tensor, 7, pool), tail = fresh_state(optimizer, tensor, 13, pool);
    std::vector<float> weights(20), gradients(20), pieces(20);
    for (std::size_t i = 0; i < 20; ++i) pieces[i] = weights[i] = 0.1F * float(i);
    for (std::int64_t step = 1; step <= 3; ++step) {
      const auto update = [&](std::vector<float>& values, std::int64_t first, std::int64_t count,
                              std::vector<Tensor>& state) {
        for (std::size_t i = 0; i < 20; ++i) gradients[i] = std::sin(float(i) + float(step));
        update_parameter(CpuKernelSet(), optimizer,
                         {.tensor = tensor,
                          .weights = values.data() + first,
                          .gradients = gradients.data() + first,
                          .elements = count,
                          .state = state},
                         step);
      };
      update(weights, 0, 20, whole);
      update(pieces, 0, 7, head);
      update(pieces, 7, 13, tail);
    }
    CHECK(pieces == weights);
  }
}

TEST_CASE("weight decay spares vectors") {
  for (const OptimizerSettings& optimizer :
       std::vector<OptimizerSettings>{AdamW{.weight_decay = 1}, AdamW8Bit{{.weight_decay = 1}}, Sgd{.weight_decay = 1},
                                      Lion{.weight_decay = 1}, Adafactor{.weight_decay = 1}})
    for (const bool is_vector : {true, false}) {
      const ParameterTensor tensor{"w", is_vector ? std::vector<std::int64_t>{4} : std::vector<std::int64_t>{2, 2}};
      TensorPool pool;
      std::vector<Tensor> state = fresh_state(optimizer, tensor, 4, pool);
      std::vector<float> weights(4, 1.0F), gradients(4, 0.0F);
      update_parameter(
          CpuKernelSet(), optimizer,
          {.tensor = tensor, .weights = weights.data(), .gradients = gradients.data(), .elements = 4, .state = state},
          1);
      CHECK((weights[0] == 1.0F) == is_vector);
    }
}

}  // namespace plumb::test
