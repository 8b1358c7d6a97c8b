#include "kernels/simt/optimizers/balance.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE("a bias of picks moves by its rate against the excess of picks, and a skipped step leaves it") {
  const Values before = random_values(70, 1);
  Values master = before, excess = random_values(70, 2);
  excess[3] = 0;  // as many picks as the mean
  const Values counted = excess;
  std::vector<Bf16> narrow(70);
  StepNumbers numbers{.gradient_factor = 0.5F};
  const simt::BalanceUpdate<Bf16> body{narrow.data(), master.data(), excess.data(), 70, 0.25F, &numbers};
  run_on_host(body, kBlocks, kLanes);
  for (std::size_t i = 0; i < 70; ++i) {
    const float moved = counted[i] > 0 ? -0.25F : counted[i] < 0 ? 0.25F : 0.0F;
    CHECK(master[i] == before[i] + moved);
  }
  CHECK(widened_all(narrow) == widened_all(stored<Bf16>(master)));
  CHECK(excess == Values(70, 0.0F));

  numbers.skips = 1;
  excess = counted;
  const Values moved = master;
  run_on_host(body, kBlocks, kLanes);
  CHECK(master == moved);
  CHECK(excess == Values(70, 0.0F));
}

}  // namespace plumb::test
