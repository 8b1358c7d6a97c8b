#include "kernels/cpu/optimizers/adamw_8bit.h"

#include <doctest/doctest.h>

#include "kernels/cpu/optimizers/adamw.h"
#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

TEST_CASE("the dynamic maps have 256 different values with 0 and 1 among them, finer near 0") {
  for (const auto* map : {&signed_dynamic_map(), &unsigned_dynamic_map()}) {
    for (std::size_t i = 1; i < map->size(); ++i) CHECK((*map)[i - 1] < (*map)[i]);
    CHECK(map->back() == 1.0F);
    CHECK((*map)[nearest_code(*map, 0.0F)] == 0.0F);
    CHECK((*map)[nearest_code(*map, 3.0F)] == 1.0F);
  }
  CHECK(unsigned_dynamic_map().front() == 0.0F);
  CHECK(signed_dynamic_map().front() > -1.0F);  // 1 has no opposite: 127 values are below 0
}

TEST_CASE("a code is that of the nearest value of the map") {
  const auto& map = signed_dynamic_map();
  for (const float value : random_values(1000, 3, 1.2F)) {
    const float found = map[nearest_code(map, value)];
    for (const float other : map) CHECK(std::abs(value - found) <= std::abs(value - other));
  }
}

TEST_CASE("8-bit AdamW agrees with a plain loop in double that quantises its moments by block") {
  constexpr std::size_t kCount = 2 * kQuantisationBlock + 5;
  const AdamW optimizer{.learning_rate = 0.01F};
  const auto blocks = static_cast<std::size_t>(quantisation_blocks(kCount));
  CHECK(blocks == 3);
  Values w = random_values(kCount, 1), m_scales(blocks, 0.0F), v_scales(blocks, 0.0F);
  std::vector<std::uint8_t> m(kCount, 7), v(kCount, 7);  // scales of 0 make all values 0
  std::vector<double> expected(w.begin(), w.end()), dm(kCount, 0), dv(kCount, 0);
  const auto quantise = [&](std::vector<double>& values, const std::array<float, 256>& map) {
    for (std::size_t begin = 0; begin < kCount; begin += kQuantisationBlock) {
      const std::size_t end = std::min<std::size_t>(kCount, begin + kQuantisationBlock);
      double largest = 0;
      for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
      for (std::size_t i = begin; i < end; ++i)
        values[i] = largest * double(map[nearest_code(map, float(values[i] / largest))]);
    }
  };
  for (unsigned step = 1; step <= 3; ++step) {
    Values g = random_values(kCount, 10 + step);
    for (std::size_t i = 0; i < kCount; ++i) {
      dm[i] = 0.9 * dm[i] + 0.1 * double(g[i]);
      dv[i] = 0.95 * dv[i] + 0.05 * double(g[i]) * double(g[i]);
      const double direction =
          dm[i] / (1 - std::pow(0.9, step)) / (std::sqrt(dv[i] / (1 - std::pow(0.95, step))) + 1e-8);
      expected[i] -= 0.01 * (direction + 0.1 * expected[i]);
    }
    quantise(dm, signed_dynamic_map());
    quantise(dv, unsigned_dynamic_map());
    adamw_8bit_update(w.data(), g.data(), {m.data(), m_scales.data()}, {v.data(), v_scales.data()}, kCount, optimizer,
                      step);
    CHECK(std::ranges::all_of(g, [](float value) { return value == 0; }));
  }
  // A value halfway between two of the map may round either way in float; such an element moves by at most the step.
  std::size_t apart = 0;
  for (std::size_t i = 0; i < kCount; ++i)
    if (std::abs(double(w[i]) - expected[i]) > 1e-5) ++apart;
  CHECK(apart < kCount / 500);
}

TEST_CASE("8-bit AdamW stays near AdamW") {
  constexpr std::size_t kCount = 3000;
  const AdamW optimizer{.learning_rate = 0.01F, .weight_decay = 0.0F};
  Values exact = random_values(kCount, 1), m(kCount, 0.0F), v(kCount, 0.0F);
  Values w = exact, m_scales(2, 0.0F), v_scales(2, 0.0F);
  const Values start = exact;
  std::vector<std::uint8_t> m_codes(kCount, 0), v_codes(kCount, 0);
  for (unsigned step = 1; step <= 10; ++step) {
    Values g = random_values(kCount, 10 + step), same = g;
    adamw_update(exact.data(), g.data(), m.data(), v.data(), kCount, optimizer, step);
    adamw_8bit_update(w.data(), same.data(), {m_codes.data(), m_scales.data()}, {v_codes.data(), v_scales.data()},
                      kCount, optimizer, step);
  }
  double error = 0, moved = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    error += std::abs(double(w[i]) - double(exact[i]));
    moved += std::abs(double(exact[i]) - double(start[i]));
  }
  CHECK(error < 0.05 * moved);  // codes are a few per cent apart at most
}

}  // namespace plumb::test
