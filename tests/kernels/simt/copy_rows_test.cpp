#include "kernels/simt/copy_rows.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE_TEMPLATE("GPU rows go to their picks' places and come back as the CPU's", S, float, Bf16, Fp16) {
  const CopyRowsSize size{.tokens = 11, .picks = 3, .columns = 19};
  constexpr std::int64_t kPlaces = 40;
  const std::vector<S> rows = stored<S>(random_values(11 * 19, 1));
  const Values weights = random_values(33, 2);
  std::vector<std::int32_t> places(kPlaces);
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), std::mt19937(std::random_device()()));
  places.resize(33);
  for (const std::size_t dropped : {2, 3, 4, 5, 20}) places[dropped] = -1;  // all picks of token 1
  Values placed(kPlaces * 19, 0.5F), back(11 * 19);
  place_rows(placed.data(), widened_all(rows).data(), places.data(), size);
  std::vector<S> own = stored<S>(Values(kPlaces * 19, 0.5F)), own_back(11 * 19);
  run_on_host(simt::PlaceRows<S>{own.data(), rows.data(), places.data(), size}, kBlocks, 8);
  CHECK(widened_all(own) == placed);
  for (const float* weight : {weights.data(), static_cast<const float*>(nullptr)}) {
    sum_placed_rows(back.data(), placed.data(), places.data(), weight, size);
    run_on_host(simt::SumPlacedRows<S>{own_back.data(), own.data(), places.data(), weight, size}, kBlocks, 8);
    CHECK(relative_difference(widened_all(own_back), back) < tolerance<S>());
  }
}

}  // namespace plumb::test
