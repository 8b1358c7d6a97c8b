// WeiPipe (Lin et al. 2025, WeiPipe-Interleave): the ring's turns, and what travels on it.

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/liveness.h"
#include "schedules/rules/validate.h"
#include "schedules/weight_traffic.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
TEST_CASE("weights of two ranks go round: those of a forward ahead of F, those of a backward ahead of B") {
  // Part 0 (stages 0 and 2) is owned by rank 1, part 1 (stages 1 and 3) by rank 0. They exchange them for the first
  // forwards. At its turns 2 and 3 rank 0 runs B, at 1 and 2 rank 1 runs F, a turn behind.
  CHECK(make_schedule("weipipe", {.ranks = 2, .microbatches = 2}).ranks ==
        rows("1SEND_WEIGHTS3 0RECV_WEIGHTS2 0SEND_WEIGHTS2 1RECV_WEIGHTS3 0F0 0RESHARD 1SEND_WEIGHTS3 1F0 1RESHARD "
             "1SEND_WEIGHTS3 0RECV_WEIGHTS2 1B0 1SEND_WGRAD3 0SEND_WEIGHTS2 0B0 0SEND_WGRAD2 1RECV_WGRAD3 0RESHARD "
             "1OPTIMIZER_STEP\n"
             "2SEND_WEIGHTS0 3RECV_WEIGHTS1 3SEND_WEIGHTS1 2RECV_WEIGHTS0 3RESHARD 3RECV_WEIGHTS1 2F1 2RESHARD "
             "2SEND_WEIGHTS0 3RECV_WEIGHTS1 3RECV_WGRAD1 3F1 2RECV_WEIGHTS0 3B1 3SEND_WGRAD1 2RECV_WGRAD0 3RESHARD 2B1 "
             "2RESHARD 2OPTIMIZER_STEP"));
}

TEST_CASE("one rank computes micro-batch after micro-batch, and nothing travels") {
  CHECK(make_schedule("weipipe", {.ranks = 1, .microbatches = 2}).ranks == rows("0F0 0B0 0F1 0B1 0OPTIMIZER_STEP"));
}

TEST_CASE("a rank sends two weights and one gradient a turn, and some at the ends of the step, however long it is") {
  for (const int p : {2, 3, 4, 7, 8}) {
    for (const int rounds : {1, 2, 5}) {
      const int m = p * rounds;
      const std::vector<WeightTraffic> ranks =
          weight_traffic(make_schedule("weipipe", {.ranks = p, .microbatches = m}));
      for (int r = 0; r < p; ++r) {
        CAPTURE(p);
        CAPTURE(m);
        CAPTURE(r);
        // Each of m turns sends a part of each flow; the last rank sends none of the last micro-batch's. A flow comes to
        // rank r with r parts on their way to micro-batch 0. Ranks r and p+1-r exchange a part once.
        const int exchanged = (p + 1 - r) % p == r ? 0 : 1;
        CHECK(ranks[r].weights == 2 * (m + r - (r == p - 1 ? p : 0)) + exchanged);
        // The sums go on from the last micro-batch, on rank p-1, to their owners.
        CHECK(ranks[r].gradients == m + p - 2 - r);
      }
    }
  }
}

TEST_CASE("a rank holds the activations of one micro-batch, and at most four parts' weights on their way") {
  for (const int p : {2, 3, 4, 7, 8}) {
    const Schedule schedule = make_schedule("weipipe", {.ranks = p, .microbatches = 3 * p});
    for (const RankLiveness& rank : liveness(schedule)) CHECK(rank.peak == p);
    // Each flow has the part of this turn and that of the next.
    for (const WeightTraffic& rank : weight_traffic(schedule)) CHECK(rank.most_held <= 4);
  }
}

TEST_CASE("more parts and micro-batches than tables hold are refused") {
  CHECK_THROWS_WITH_AS(make_schedule("weipipe", {.ranks = 1024, .microbatches = 1024}),
                       doctest::Contains("makes 1.07e+09 entries for 1024 micro-batches"), ScheduleError);
}

TEST_CASE("any number of micro-batches gives a valid order") {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 3 * p; ++m) {
      CAPTURE(p);
      CAPTURE(m);
      CHECK(validate(make_schedule("weipipe", {.ranks = p, .microbatches = m}), {.sends = Sends::kRendezvous}).empty());
    }
  }
}

}  // namespace plumb::test
