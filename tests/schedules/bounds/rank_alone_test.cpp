#include "schedules/bounds/rank_alone.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <doctest/doctest.h>

#include "tests/schedules/order_questions.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kAnyEffort = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLate = 1'000'000;

/// A V of four ranks with F = I = W = 1 and eight micro-batches.
OrderQuestion v_question(int most) {
  OrderQuestion question{.frame = {.microbatches = 8, .stages = snake_placement(4, 8)},
                         .ranks = 4,
                         .costs = equal_costs({.weight_grad = 1}, 8)};
  question.memory = counted_activations(question, most);
  return question;
}

}  // namespace

TEST_CASE("where a V's memory holds one micro-batch, the last rank does everything else before the next one") {
  // Rank 3 has stages 3 and 4, and holds two activations. From the start of stage 4's forward at 4 it waits 8 for the
  // end of its input gradient. Then it runs W of stage 4, I and W of stage 3, and F of stage 3 of the next micro-batch
  // before that enters stage 4: a cycle of 12. The first forward is at 3 behind that of rank 0; stage 0 ends 4 behind
  // the last input gradient of stage 3, a weight gradient included.
  const LowerBound bound = rank_alone_bound(v_question(2), 3, kLate, kAnyEffort);
  CHECK(bound.time == 4 + 7 * 12 + 8 + 1 + 3 + 1);
  CHECK(bound.reason == rank_alone_reason(3));
  CHECK(std::accumulate(bound.terms.begin(), bound.terms.end(), std::int64_t{0},
                        [](std::int64_t sum, const BoundTerm& term) { return sum + term.time; }) == bound.time);
}

TEST_CASE("more memory never makes the bound of a rank alone larger, and its work is always in it") {
  for (int rank = 0; rank < 4; ++rank) {
    std::int64_t last = std::numeric_limits<std::int64_t>::max();
    for (int most = 2; most <= 8; ++most) {
      const std::int64_t time = rank_alone_bound(v_question(most), rank, kLate, kAnyEffort).time;
      CHECK(time <= last);
      CHECK(time >= 8 * 6);
      last = time;
    }
  }
}

TEST_CASE(
    "a bound that reaches the time that is known is not told from larger ones, and too little effort gives none") {
  const OrderQuestion question = v_question(2);
  CHECK(rank_alone_bound(question, 3, 90, kAnyEffort).time == 90);
  CHECK(rank_alone_bound(question, 3, kLate, 10).time == 0);
}

}  // namespace plumb::test
