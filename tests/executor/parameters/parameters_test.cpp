#include "executor/parameters/parameters.h"

#include <doctest/doctest.h>

#include "executor/parameters/initial_weights.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/optimizers/adamw.h"
#include "tests/executor/small_model.h"

namespace plumb::test {

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
  const float* before = parameters.weights(0, 0).data;
  const std::vector<float> values(before, before + parameter_count(llama_block()));
  std::ranges::fill(parameters.all_gradients(), 1.0F);
  parameters.step(CpuKernelSet());
  CHECK(parameters.held_versions() == 2);
  CHECK(std::ranges::equal(values, std::span(parameters.weights(0, 0).data, values.size())));
  CHECK(parameters.weights(1, 0).data[0] != values[0]);
  parameters.release(0);
  CHECK(parameters.held_versions() == 2);
  parameters.release(0);
  CHECK(parameters.held_versions() == 1);
  parameters.release(1);
  CHECK(parameters.held_versions() == 1);  // the newest stays
  parameters.step(CpuKernelSet());
  CHECK(parameters.held_versions() == 1);  // no micro-batch needs version 1: updated in place
}

TEST_CASE("weights in 16 bits are the master copy rounded, and the update is made in fp32") {
  for (const HalfFormat format : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    TensorPool pool;
    CpuParameterOptions options{.layers = {llama_block()}, .half = format};
    CpuParameters halves(options, pool);
    options.half = {};
    CpuParameters single(options, pool);
    const std::int64_t count = parameter_count(llama_block());
    CHECK(halves.held_bytes() == ParameterBytes{.weights = 2 * count, .gradients = 4 * count, .optimizer = 12 * count});
    CHECK(single.held_bytes() == ParameterBytes{.weights = 4 * count, .gradients = 4 * count, .optimizer = 8 * count});
    for (CpuParameters* parameters : {&halves, &single}) {
      parameters->begin({});
      for (std::size_t i = 0; i < parameters->all_gradients().size(); ++i)
        parameters->all_gradients()[i] = 0.01F * float(int(i % 11) - 5);
      parameters->step(CpuKernelSet());
    }
    CHECK(halves.weight_values() == single.weight_values());
    const WidenedWeights widened = halves.weights(1, 0);
    std::vector<std::uint16_t> expected(static_cast<std::size_t>(count));
    narrow(expected.data(), single.newest_weights().data(), count, format);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint16_t bits = expected[static_cast<std::size_t>(i)];
      REQUIRE(widened.data[i] == (format == HalfFormat::kBf16 ? widen_bf16(bits) : widen_fp16(bits)));
    }
  }
}

TEST_CASE("state in the host's memory gives the same weights, bitwise, and takes none of the rank's") {
  for (const std::optional<HalfFormat> half : {std::optional<HalfFormat>{}, std::optional(HalfFormat::kBf16)}) {
    TensorPool pool, host, other;
    CpuParameterOptions options{.layers = {gpt_block()}, .half = half};
    CpuParameters here(options, other);
    options.state_pool = &host;
    CpuParameters away(options, pool);
    CHECK(pool.live_bytes() == here.held_bytes().weights + here.held_bytes().gradients);
    CHECK(host.live_bytes() == here.held_bytes().optimizer);
    for (CpuParameters* parameters : {&here, &away})
      for (int step = 0; step < 2; ++step) {
        parameters->begin({});
        std::ranges::fill(parameters->all_gradients(), 0.5F);
        parameters->step(CpuKernelSet());
        CHECK(std::ranges::all_of(parameters->all_gradients(), [](float g) { return g == 0; }));
      }
    CHECK(away.weight_values() == here.weight_values());
    CHECK(host.live_bytes() == here.held_bytes().optimizer);
  }
}

TEST_CASE("a skipped step leaves weights and state as they are, and zero gradients") {
  TensorPool pool;
  CpuParameters stepped({.layers = {llama_block()}}, pool), skipped({.layers = {llama_block()}}, pool);
  for (CpuParameters* parameters : {&skipped, &stepped}) {
    parameters->begin({});
    const LayerValues before = parameters->weight_values();
    if (parameters == &skipped) {
      std::ranges::fill(parameters->all_gradients(), INFINITY);
      parameters->step(CpuKernelSet(), true);
      CHECK(parameters->weight_values() == before);
    }
    CHECK(std::ranges::all_of(parameters->all_gradients(), [](float g) { return g == 0; }));
    std::ranges::fill(parameters->all_gradients(), 0.25F);
    parameters->step(CpuKernelSet());
  }
  CHECK(skipped.weight_values() == stepped.weight_values());
}

TEST_CASE("members measure their own elements, which together are all, and fp16 overflows beyond 65504") {
  const std::vector<Layer> layers = gpt_model(1);
  const ParameterPlaces places = parameter_places(layers);
  const std::int64_t count = places.first_element.back();
  double square_sum = 0;
  TensorPool pool;
  for (int member = 0; member < 3; ++member) {
    CpuParameterOptions options{.layers = layers,
                                .half = HalfFormat::kFp16,
                                .shares = {.bounds = shares_by_element(count, 3), .member = member}};
    CpuParameters parameters(options, pool);
    std::ranges::fill(parameters.all_gradients(), 2.0F);
    const GradientMeasure measure = parameters.measure({10, 5});
    square_sum += measure.square_sum;
    CHECK_FALSE(measure.overflows);
    const std::int64_t own = options.shares.own().first;
    parameters.all_gradients()[static_cast<std::size_t>(own)] = 65505.0F;
    CHECK(parameters.measure({}).overflows);
    parameters.all_gradients()[static_cast<std::size_t>(own)] = NAN;
    CHECK(parameters.measure({}).overflows);
  }
  CHECK(square_sum == 4.0 * static_cast<double>(count - 5));
}

}  // namespace plumb::test
