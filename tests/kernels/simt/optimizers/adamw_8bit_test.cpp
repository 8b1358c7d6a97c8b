#include "kernels/simt/optimizers/adamw_8bit.h"

#include <cmath>

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE("GPU 8-bit AdamW keeps the CPU's weights, codes and scales over several steps") {
  constexpr std::int64_t kElements = 2 * kQuantisationBlock + 77;
  const auto blocks = static_cast<std::size_t>(quantisation_blocks(kElements));
  const AdamW optimizer{.learning_rate = 0.01F};
  struct Moment {
    std::vector<std::uint8_t> codes = std::vector<std::uint8_t>(kElements, 0);
    Values scales;
    QuantisedMoment view() { return {codes.data(), scales.data()}; }
  };
  const Moment zeros{.scales = Values(blocks, 0.0F)};
  Moment first = zeros, second = zeros, own_first = zeros, own_second = zeros;
  Values weights = random_values(kElements, 1), master = weights, narrow(kElements);
  for (int step = 1; step <= 3; ++step) {
    Values gradients = random_values(kElements, 10U + static_cast<unsigned>(step)), own_gradients = gradients;
    adamw_8bit_update(weights.data(), gradients.data(), first.view(), second.view(), kElements, optimizer, step);
    // The loss scale is 8, which the step's factor undoes; then comes a step that is skipped.
    StepNumbers numbers{.first_correction = 1.0F - std::pow(optimizer.beta1, float(step)),
                        .second_correction = 1.0F - std::pow(optimizer.beta2, float(step)),
                        .gradient_factor = 0.125F};
    for (float& gradient : own_gradients) gradient *= 8;
    const simt::AdamW8BitUpdate<float, float> update{.weights = narrow.data(),
                                                     .master = master.data(),
                                                     .gradients = own_gradients.data(),
                                                     .first = own_first.view(),
                                                     .second = own_second.view(),
                                                     .signed_map = signed_dynamic_map().data(),
                                                     .unsigned_map = unsigned_dynamic_map().data(),
                                                     .elements = kElements,
                                                     .optimizer = optimizer,
                                                     .numbers = &numbers};
    run_on_host(update, kBlocks, kLanes);
    const Values updated = master;
    const std::vector<std::uint8_t> codes = own_first.codes;
    own_gradients.assign(kElements, INFINITY);
    numbers.skips = 1;
    run_on_host(update, kBlocks, kLanes);
    CHECK(master == updated);
    CHECK(own_first.codes == codes);
    CHECK(relative_difference(master, weights) < 1e-5);
    CHECK(narrow == master);
    CHECK(own_gradients == Values(kElements, 0.0F));
    CHECK(relative_difference(own_first.scales, first.scales) < 1e-5);
    CHECK(relative_difference(own_second.scales, second.scales) < 1e-5);
    std::int64_t different = 0;  // a value between two codes may be rounded either way
    for (std::size_t i = 0; i < first.codes.size(); ++i)
      different += (own_first.codes[i] != first.codes[i]) + (own_second.codes[i] != second.codes[i]);
    CHECK(different < kElements / 100);
  }
}

TEST_CASE("GPU codes are the CPU's for every value of the maps and between them") {
  for (const auto* map : {&signed_dynamic_map(), &unsigned_dynamic_map()}) {
    for (std::size_t i = 0; i < 256; ++i) {
      const float value = (*map)[i], next = (*map)[i < 255 ? i + 1 : i];
      for (const float each : {value, 0.5F * (value + next), 0.9F * value + 0.1F * next, value - 2.0F, value + 2.0F})
        CHECK(simt::nearest_code_of(map->data(), each) == nearest_code(*map, each));
    }
  }
}

}  // namespace plumb::test
