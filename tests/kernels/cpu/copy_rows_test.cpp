#include "kernels/cpu/copy_rows.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

TEST_CASE("rows go to their picks' places and come back weighted, dropped picks left out") {
  const CopyRowsSize size{.tokens = 3, .picks = 2, .columns = 2};
  const Values rows = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> places = {3, 0, -1, 2, -1, -1};
  Values placed(8, -7.0F);
  place_rows(placed.data(), rows.data(), places.data(), size);
  CHECK(placed == Values{1, 2, -7, -7, 3, 4, 1, 2});
  const Values weights = {0.5F, 0.25F, 9, 2, 9, 9};
  Values back(6, -7.0F);
  sum_placed_rows(back.data(), placed.data(), places.data(), weights.data(), size);
  CHECK(back == Values{0.75F, 1.5F, 6, 8, 0, 0});
  sum_placed_rows(back.data(), placed.data(), places.data(), nullptr, size);
  CHECK(back == Values{2, 4, 3, 4, 0, 0});
}

}  // namespace plumb::test
