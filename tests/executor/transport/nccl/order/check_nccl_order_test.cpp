// The checker: every kind of fault is found, and what it decides is what a search through all orders of progress
// decides.

#include "tests/executor/transport/nccl/order/check_nccl_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <string>

#include "tests/executor/small_model.h"
#include "tests/executor/transport/nccl/order/training_order.h"

namespace plumb::test {
namespace {

RunSpec pipeline(const char* schedule, int ranks, int microbatches, int data = 1, int chunks = 1) {
  const Schedule order = make_schedule(schedule, {.ranks = ranks, .microbatches = microbatches, .chunks = chunks});
  return spec_of(llama_model(std::max(4, ranks * 2 - 2)), order, data);
}

bool passes(const NcclOrder& order, const NcclLimits& limits = {}) {
  return check_nccl_order(order, limits).empty();
}

/// [rank] the calls that are NCCL's.
std::vector<std::size_t> nccl_calls(const RankOrder& rank) {
  std::vector<std::size_t> calls;
  for (std::size_t i = 0; i < rank.calls.size(); ++i)
    if (rank.calls[i].kind) calls.push_back(i);
  return calls;
}

/// Two ranks and a communicator for each of `streams`; calls by (rank, kind, communicator), without waits.
struct Made {
  int rank;
  CollectiveKind kind;
  std::int32_t communicator;
  std::int32_t group = OrderedCall::kNone;
};
NcclOrder made(const std::vector<Made>& calls, int communicators, int ranks = 2) {
  NcclOrder order;
  for (int i = 0; i < communicators; ++i) order.communicators.push_back({"pair", {0, 1}});
  order.ranks.resize(static_cast<std::size_t>(ranks));
  for (const Made& call : calls)
    order.ranks[static_cast<std::size_t>(call.rank)].calls.push_back(
        {.kind = call.kind,
         .communicator = call.communicator,
         .peer = call.kind == CollectiveKind::kAllReduce ? OrderedCall::kNone : 1 - call.rank,
         .stream = 1 + call.communicator,
         .group = call.group,
         .bytes = 8});
  return order;
}

/// Finds out if every order of progress ends, by a search through all states: which calls have started and which have
/// ended. One kernel a call; groups of one communicator only.
class Search {
 public:
  Search(const NcclOrder& order, int channels) : order_(order), channels_(channels) {}

  bool always_ends() {
    State start;
    for (const RankOrder& rank : order_.ranks) start.emplace_back(rank.calls.size(), 0);
    return visit(start);
  }

 private:
  using State = std::vector<std::vector<int>>;  // 0 idle, 1 started, 2 ended

  bool visit(const State& state) {
    if (!seen_.insert(state).second) return true;
    bool moved = false;
    for (std::size_t rank = 0; rank < state.size(); ++rank)
      for (std::size_t call = 0; call < state[rank].size(); ++call) {
        if (state[rank][call] == 0 && can_start(state, rank, call)) {
          State next = state;
          const bool computes = !order_.ranks[rank].calls[call].kind;
          next[rank][call] = computes ? 2 : 1;
          moved = true;
          if (!visit(next)) return false;
        } else if (state[rank][call] == 1) {
          const auto [other_rank, other] = partner(rank, call);
          if (state[other_rank][other] == 0) continue;
          State next = state;
          next[rank][call] = 2;
          moved = true;
          if (!visit(next)) return false;
        }
      }
    return moved || std::ranges::all_of(state, [](const auto& calls) {
             return std::ranges::all_of(calls, [](int call) { return call == 2; });
           });
  }

  bool can_start(const State& state, std::size_t rank, std::size_t call) const {
    const RankOrder& list = order_.ranks[rank];
    const OrderedCall& of = list.calls[call];
    int resident = 0;
    for (std::size_t i = 0; i < state[rank].size(); ++i) {
      resident += state[rank][i] == 1 ? 1 : 0;
      if (i >= call) continue;
      if (list.calls[i].stream == of.stream && state[rank][i] != 2) return false;
      const bool both_launch = list.calls[i].kind && of.kind;
      if (both_launch && state[rank][i] == 0) return false;
    }
    for (std::int32_t i = 0; i < of.waits; ++i)
      if (state[rank][static_cast<std::size_t>(list.waits[static_cast<std::size_t>(of.first_wait + i)])] != 2)
        return false;
    return !of.kind || resident < channels_;
  }

  /// Returns the other call of a pair in a world of two: the same place among the other rank's calls of the
  /// counterpart's kind on the communicator.
  std::pair<std::size_t, std::size_t> partner(std::size_t rank, std::size_t call) const {
    const auto counterpart = [](CollectiveKind kind) {
      if (kind == CollectiveKind::kSend) return CollectiveKind::kReceive;
      return kind == CollectiveKind::kReceive ? CollectiveKind::kSend : kind;
    };
    const std::vector<OrderedCall>&own = order_.ranks[rank].calls, &there = order_.ranks[1 - rank].calls;
    const auto is_like = [&](const OrderedCall& a, std::optional<CollectiveKind> kind) {
      return a.communicator == own[call].communicator && a.kind == kind;
    };
    auto place = std::count_if(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(call),
                               [&](const OrderedCall& a) { return is_like(a, own[call].kind); });
    for (std::size_t i = 0; i < there.size(); ++i)
      if (is_like(there[i], counterpart(*own[call].kind)) && place-- == 0) return {1 - rank, i};
    return {rank, call};
  }

  const NcclOrder& order_;
  const int channels_;
  std::set<State> seen_;
};

}  // namespace

TEST_CASE("sends of both ranks before their receives need a channel each, and a stream each") {
  const std::vector<Made> crossed = {{0, CollectiveKind::kSend, 0},
                                     {0, CollectiveKind::kReceive, 1},
                                     {1, CollectiveKind::kSend, 1},
                                     {1, CollectiveKind::kReceive, 0}};
  CHECK(channels_needed(made(crossed, 2)) == 2);
  CHECK_FALSE(passes(made(crossed, 2), {.channels = 1}));
  CHECK(passes(made(crossed, 2), {.channels = 2}));
  CHECK_FALSE(passes(made(crossed, 2), {.channels = 1, .implicit_order = false}));
  CHECK_FALSE(passes(made(crossed, 2), {.queue_depth = 1}));

  std::vector<Made> on_one = crossed;
  for (Made& call : on_one) call.communicator = 0;
  CHECK(channels_needed(made(on_one, 1)) == 0);
  for (Made& call : on_one) call.group = 0;
  CHECK(channels_needed(made(on_one, 1)) == 1);

  const std::vector<std::string> why = check_nccl_order(made(crossed, 2), {.channels = 1});
  REQUIRE(why.size() == 4);
  CHECK(why[1] == "rank 0, call 0: send of 8 bytes to rank 1 (pair, ranks 0, 1) waits for rank 1");
  CHECK(why[2] == "rank 1, call 0: send of 8 bytes to rank 0 (pair, ranks 0, 1) waits for rank 0");
}

TEST_CASE("collectives of two groups in different order deadlock with one channel, and on one stream") {
  const std::vector<Made> calls = {{0, CollectiveKind::kAllReduce, 0},
                                   {0, CollectiveKind::kAllReduce, 1},
                                   {1, CollectiveKind::kAllReduce, 1},
                                   {1, CollectiveKind::kAllReduce, 0}};
  CHECK(channels_needed(made(calls, 2)) == 2);
  NcclOrder on_one_stream = made(calls, 2);
  for (RankOrder& rank : on_one_stream.ranks)
    for (OrderedCall& call : rank.calls) call.stream = 1;
  CHECK(channels_needed(on_one_stream) == 0);
}

TEST_CASE("every fault that is put into an order is found") {
  RunSpec spec = pipeline("1f1b", 4, 6, 2);
  const NcclOrder right = training_order(spec);
  REQUIRE(passes(right));
  std::size_t mutants = 0;
  const auto expect_found = [&](const char* what, std::size_t rank, std::size_t call, const NcclOrder& wrong) {
    ++mutants;
    CAPTURE(what);
    CAPTURE(rank);
    CAPTURE(call);
    CHECK_FALSE(passes(wrong));
  };
  for (std::size_t rank = 0; rank < right.ranks.size(); ++rank)
    for (const std::size_t call : nccl_calls(right.ranks[rank])) {
      const auto mutate = [&](const char* what, const std::function<void(NcclOrder&, OrderedCall&)>& change) {
        NcclOrder wrong = right;
        change(wrong, wrong.ranks[rank].calls[call]);
        expect_found(what, rank, call, wrong);
      };
      mutate("bytes", [](NcclOrder&, OrderedCall& of) { of.bytes += 4; });
      mutate("kind", [](NcclOrder&, OrderedCall& of) {
        of.kind = of.kind == CollectiveKind::kSend ? CollectiveKind::kReceive : CollectiveKind::kSend;
        of.peer = 1 - std::max(0, of.peer);
      });
      mutate("peer", [](NcclOrder&, OrderedCall& of) { of.peer = of.peer == 0 ? 1 : 0; });
      mutate("communicator", [](NcclOrder& wrong, OrderedCall& of) {
        of.communicator = (of.communicator + 1) % static_cast<std::int32_t>(wrong.communicators.size());
      });
      mutate("left out", [&](NcclOrder& wrong, OrderedCall& of) {
        of = {};
        wrong.ranks[rank].waits.push_back(0);
      });
      mutate("waits for a later call", [&](NcclOrder& wrong, OrderedCall& of) {
        of.first_wait = static_cast<std::int32_t>(wrong.ranks[rank].waits.size());
        of.waits = 1;
        wrong.ranks[rank].waits.push_back(static_cast<std::int32_t>(call) + 1);
      });
    }
  CHECK(mutants > 600);
}

TEST_CASE("two messages of one channel that change places at one end are found where their sizes differ") {
  NcclOrder order = training_order(pipeline("gpipe", 2, 3));
  const auto of_kind = [&](std::size_t rank, CollectiveKind kind) {
    std::vector<OrderedCall*> calls;
    for (OrderedCall& call : order.ranks[rank].calls)
      if (call.kind == kind) calls.push_back(&call);
    return calls;
  };
  const std::vector<OrderedCall*> sends = of_kind(0, CollectiveKind::kSend),
                                  receives = of_kind(1, CollectiveKind::kReceive);
  REQUIRE(sends.size() == 3);
  REQUIRE(receives.size() == 3);
  sends[0]->bytes = receives[0]->bytes = 12;
  CHECK(passes(order));
  std::swap(*sends[0], *sends[2]);
  CHECK_FALSE(passes(order));
}

TEST_CASE("the calls of training need no more room than their largest group") {
  for (const auto& [name, chunks] : {std::pair{"izb", 2}, {"1f1b", 1}, {"dualpipev", 1}}) {
    CAPTURE(name);
    const NcclOrder order = training_order(pipeline(name, 2, 4, 1, chunks));
    CHECK(channels_needed(order) == most_kernels_of_a_group(order));
  }
}

TEST_CASE("what the checker decides is what a search through all orders of progress decides") {
  std::mt19937 random(7);
  int deadlocks = 0, ends = 0;
  for (int round = 0; round < 400; ++round) {
    // Random lists of sends and receives that match by number, in random host orders, with random waits.
    const int communicators = 1 + static_cast<int>(random() % 3), pairs = 2 + static_cast<int>(random() % 2);
    std::vector<std::vector<Made>> lists(2);
    for (int pair = 0; pair < pairs; ++pair) {
      const auto communicator = static_cast<std::int32_t>(random() % static_cast<unsigned>(communicators));
      const bool all = random() % 3 == 0;
      const int source = static_cast<int>(random() % 2);
      for (const int rank : {0, 1})
        lists[static_cast<std::size_t>(rank)].push_back({rank,
                                                         all              ? CollectiveKind::kAllReduce
                                                         : rank == source ? CollectiveKind::kSend
                                                                          : CollectiveKind::kReceive,
                                                         communicator});
    }
    std::vector<Made> calls;
    for (std::vector<Made>& list : lists) {
      std::ranges::shuffle(list, random);
      calls.insert(calls.end(), list.begin(), list.end());
    }
    NcclOrder order = made(calls, communicators);
    for (RankOrder& rank : order.ranks) {
      rank.calls.insert(rank.calls.begin() + 1, OrderedCall{});  // kernels, behind the first call or not
      if (random() % 2 == 0) rank.calls[1].waits = 1, rank.waits = {0};
      if (random() % 2 == 0) {
        rank.calls[2].first_wait = static_cast<std::int32_t>(rank.waits.size());
        rank.calls[2].waits = 1;
        rank.waits.push_back(1);
      }
    }
    for (const int channels : {1, 2, 3}) {
      const bool expected = Search(order, channels).always_ends();
      CAPTURE(round);
      CAPTURE(channels);
      CHECK(passes(order, {.channels = channels}) == expected);
      ++(expected ? ends : deadlocks);
    }
  }
  CHECK(deadlocks > 100);
  CHECK(ends > 100);
}

}  // namespace plumb::test
