// TawPipe (Wu & Chen 2025): weights that stay where they are stored, and are shared within nodes.

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/liveness.h"
#include "schedules/rules/validate.h"
#include "schedules/weight_traffic.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
namespace {

std::int64_t count_of(const Schedule& schedule, Op op) {
  std::int64_t count = 0;
  for (const std::vector<Action>& actions : schedule.ranks) count += std::ranges::count(actions, op, &Action::op);
  return count;
}

std::int64_t between_nodes(const Schedule& schedule, Op op, int node_ranks) {
  std::int64_t count = 0;
  for (const std::vector<Action>& actions : schedule.ranks) {
    count += std::ranges::count_if(actions, [&](const Action& a) {
      return a.op == op && schedule.stages[a.stage].rank / node_ranks != schedule.stages[a.peer].rank / node_ranks;
    });
  }
  return count;
}

}  // namespace

TEST_CASE(
    "each of two nodes of one rank gets the other's part a step ahead, and keeps the last part for its backward") {
  // Part 0 is owned by rank 0, part 1 by rank 1, which is a step behind.
  CHECK(make_schedule("tawpipe", {.ranks = 2, .microbatches = 2, .node_ranks = 1}).ranks ==
        rows("0SEND_WEIGHTS2 1RECV_WEIGHTS3 0F0 1F0 1B0 1SEND_WGRAD3 1RESHARD 0SEND_WEIGHTS2 0B0 0RECV_WGRAD2 "
             "0OPTIMIZER_STEP\n"
             "3SEND_WEIGHTS1 2RECV_WEIGHTS0 2F1 2RESHARD 3F1 3RECV_WGRAD1 2RECV_WEIGHTS0 3B1 2B1 2SEND_WGRAD0 2RESHARD "
             "3OPTIMIZER_STEP"));
}

TEST_CASE("a part goes once to every other rank for each pass, and once to every other node") {
  for (const int p : {4, 6, 12}) {
    for (int node = 1; node <= p; ++node) {
      if (p % node != 0) continue;
      for (const int rounds : {1, 3}) {
        CAPTURE(p);
        CAPTURE(node);
        CAPTURE(rounds);
        const Schedule schedule =
            make_schedule("tawpipe", {.ranks = p, .microbatches = p * rounds, .node_ranks = node});
        // There are 2p passes a round. The first backward, and the next round's first forward, find their part in place.
        const int passes = rounds * (2 * p - 2) + 1;
        CHECK(count_of(schedule, Op::kSendWeights) == passes * (p - 1));
        CHECK(between_nodes(schedule, Op::kSendWeights, node) == passes * (p / node - 1));
        CHECK(count_of(schedule, Op::kSendWeightGrad) == rounds * p * (p - 1));
        CHECK(between_nodes(schedule, Op::kSendWeightGrad, node) == rounds * p * (p / node - 1));
        for (const RankLiveness& rank : liveness(schedule)) CHECK(rank.peak == p);
        // The part of this step and that of the next, where they are not the rank's own.
        for (const WeightTraffic& rank : weight_traffic(schedule)) CHECK(rank.most_held <= 2);
      }
    }
  }
}

TEST_CASE("any number of micro-batches, and any divisor, give a valid order") {
  for (int p = 1; p <= 6; ++p) {
    for (int node = 1; node <= p; ++node) {
      for (int m = 1; m <= 3 * p; ++m) {
        CAPTURE(p);
        CAPTURE(node);
        CAPTURE(m);
        const ScheduleParameters parameters{.ranks = p, .microbatches = m, .node_ranks = node};
        if (p % node == 0) {
          CHECK(validate(make_schedule("tawpipe", parameters), {.sends = Sends::kRendezvous}).empty());
        } else {
          CHECK_THROWS_AS(make_schedule("tawpipe", parameters), ScheduleError);
        }
      }
    }
  }
  CHECK_THROWS_WITH(make_schedule("tawpipe", {.ranks = 4, .microbatches = 4, .node_ranks = 3}),
                    "tawpipe has nodes of 3 ranks, which do not divide 4: give a divisor");
}

}  // namespace plumb::test
