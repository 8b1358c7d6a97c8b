#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
namespace {

/// Returns the most micro-batches whose F has run on a stage and whose B has not, by reading its rank's list.
int most_in_flight(const Schedule& schedule, int stage) {
  int here = 0, most = 0;
  for (const Action& action : schedule.ranks[static_cast<std::size_t>(schedule.stages[stage].rank)]) {
    if (action.stage != stage) continue;
    if (action.op == Op::kForward) most = std::max(most, ++here);
    if (gives_weight_gradient(action.op)) --here;
  }
  return most;
}

}  // namespace

TEST_CASE("vocab-1 puts two intervals between the last stage's forward and backward, for S and for T") {
  CHECK(make_schedule("vocab-1", {.ranks = 2, .microbatches = 2}).ranks == rows("0F0 2F0 0F1 2F1 2B0 2B1 0B0 0B1\n"
                                                                                "1F0 3F0 1F1 3F1 3B0 1B0 3B1 1B1\n"));
}

TEST_CASE("vocab-2 makes the input gradient in S, and puts one interval there") {
  CHECK(make_schedule("vocab-2", {.ranks = 2, .microbatches = 2}).ranks ==
        rows("0F0 2F0 2I0 0F1 2F1 2I1 2W0 0B0 2W1 0B1\n"
             "1F0 3F0 3I0 1F1 1B0 3F1 3I1 3W0 1B1 3W1\n"));
}

TEST_CASE("vocabulary parallelism holds p+2 and p+1 activations (Yeung et al. 2024, figure 10), two of a shard's") {
  for (const ChunkCosts& costs : {ChunkCosts{}, ChunkCosts{.forward = {Seconds{3}}, .backward = {Seconds{5}}}}) {
    for (int p = 1; p <= 8; ++p) {
      for (int m = 1; m <= 3 * p + 2; ++m) {
        INFO("p=", p, " m=", m);
        const Schedule one = make_schedule("vocab-1", {.ranks = p, .microbatches = m, .costs = costs});
        const Schedule two = make_schedule("vocab-2", {.ranks = p, .microbatches = m, .costs = costs});
        CHECK(validate(one).empty());
        CHECK(validate(two).empty());
        for (int r = 0; r < p; ++r) {
          CHECK(most_in_flight(one, r) == std::min(p - r + 2, m));
          CHECK(most_in_flight(two, r) == std::min(p - r + 1, m));
          CHECK(most_in_flight(one, p + r) == std::min(2, m));
          CHECK(most_in_flight(two, p + r) == std::min(2, m));
        }
      }
    }
  }
}

TEST_CASE("the order of vocabulary parallelism is made for costs, which are given for stages and shards") {
  const auto made = [](const ChunkCosts& costs) {
    return make_schedule("vocab-2", {.ranks = 8, .microbatches = 16, .costs = costs});
  };
  std::vector<Seconds> small_shards(16, Seconds{1});
  std::fill(small_shards.begin() + 8, small_shards.end(), Seconds{0.1});
  CHECK(made({}).ranks !=
        made({.forward = small_shards, .input_grad = small_shards, .weight_grad = small_shards}).ranks);
  CHECK(made({.forward = {Seconds{0}}, .input_grad = {Seconds{0}}, .weight_grad = {Seconds{0}}}).ranks.size() == 8);
  CHECK_THROWS_AS(made({.forward = {Seconds{1}, Seconds{2}, Seconds{3}}}), SpecError);
}

}  // namespace plumb::test
