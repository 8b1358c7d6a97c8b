#include "schedules/liveness.h"

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"

namespace plumb::test {

TEST_SUITE("unit") {
  TEST_CASE("a chunk is held from its forward to its weight gradient") {
    const std::vector<RankLiveness> ranks = liveness(parse_schedule("0F0 0F1 0I0 0W0 0I1 0W1\n", "a test"));
    REQUIRE(ranks.size() == 1);
    CHECK(ranks[0].held == std::vector<int>{1, 2, 2, 2, 1, 1});
    CHECK(ranks[0].peak == 2);
  }

  TEST_CASE("1F1B's rank r holds p - r activations at most, GPipe's all of them") {
    const std::vector<RankLiveness> one_f_one_b = liveness(make_schedule("1f1b", {.ranks = 4, .microbatches = 9}));
    for (int r = 0; r < 4; ++r) CHECK(one_f_one_b[r].peak == 4 - r);
    for (const RankLiveness& rank : liveness(make_schedule("gpipe", {.ranks = 4, .microbatches = 9}))) {
      CHECK(rank.peak == 9);
    }
  }

  TEST_CASE("forwards alone hold nothing beyond themselves") {
    for (const RankLiveness& rank : liveness(make_schedule("forward-only", {.ranks = 3, .microbatches = 5}))) {
      CHECK(rank.peak == 1);
    }
  }

  TEST_CASE("what a rank has evicted counts on its partner") {
    const std::vector<RankLiveness> ranks =
        liveness(parse_schedule("0F0 0F1 0EVICT1 0F2 0B0 0LOAD1 0B1 0B2\n1F0 1B0 1F1 1B1 1F2 1B2\n", "a test"));
    CHECK(ranks[0].held == std::vector<int>{1, 2, 2, 2, 2, 2, 2, 1});
    CHECK(ranks[0].guests == 0);
    CHECK(ranks[1].guests == 1);
    CHECK(ranks[1].peak == 2);
  }
}

}  // namespace plumb::test
