#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"
#include "schedules/phases.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {

TEST_CASE("STP braids forwards with passes of the same chunk, and puts weight gradients off") {
  // 3p-1 micro-batches: the steady state is the three pairs 2F2&2B0 1F4&1B0 2F3&2I1 on rank 1, and one on rank 0.
  CHECK(make_schedule("stp", {.ranks = 2, .microbatches = 5}).ranks ==
        rows("0F0 0F1 0F2 3F0 0F3 3F1&3I0 0F4&3W0 3F2&3B1 0B0 3F3&3I2 0B1 3F4&3I3 0B2 3B4 0B3 3W2 3W3 0B4\n"
             "1F0 2F0 1F1 2F1 1F2&1F3 2F2&2B0 1F4&1B0 2F3&2I1 1B1 2F4&2I2 1B2 2B3 1B3 2B4 1B4 2W1 2W2\n"));
}

TEST_CASE("STP for fewer micro-batches leaves the last ones out, and their partners run alone") {
  CHECK(make_schedule("stp", {.ranks = 2, .microbatches = 3}).ranks ==
        rows("0F0 0F1 0F2 3F0 3F1&3I0 3W0 3F2&3B1 0B0 3I2 0B1 0B2 3W2\n"
             "1F0 2F0 1F1 2F1 1F2 2F2&2B0 1B0 2I1 1B1 2I2 1B2 2W1 2W2\n"));
}

TEST_CASE("all pairs of STP take turns, so that they hide each other's exchanges") {
  int pairs = 0;
  for (const std::vector<Action>& actions : make_schedule("stp", {.ranks = 4, .microbatches = 16}).ranks)
    for (std::size_t i = 0; i + 1 < actions.size(); ++i) {
      if (!actions[i].overlaps_next) continue;
      ++pairs;
      CHECK(actions[i].op == Op::kForward);
      CHECK(take_turns(actions[i], actions[i + 1]));
    }
  // Rank r has 32 forwards: 8 are alone, and one more where r is even. (r+1)/2 pairs have two forwards.
  CHECK(pairs == (32 - 9) + (32 - 8 - 1) + (32 - 9 - 1) + (32 - 8 - 2));
}

}  // namespace plumb::test
