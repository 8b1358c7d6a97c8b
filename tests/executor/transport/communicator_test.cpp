#include "executor/transport/communicator.h"
#include "executor/spec/division/equal_blocks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "executor/transport/in_process_transport.h"
#include "tests/executor/has.h"

namespace plumb::test {
namespace {

constexpr CollectiveAlgorithm kAlgorithms[] = {CollectiveAlgorithm::kRing, CollectiveAlgorithm::kTree};

using MemberBuffers = std::vector<std::vector<float>>;  // [member]

/// Runs `work` as every member of a group of `members` and returns the errors of those that failed by themselves. The
/// group's ranks are 10, 11, ... of a larger world.
std::vector<std::string> as_members(int members, CollectiveAlgorithm algorithm,
                                    const std::function<void(Communicator&)>& work, Seconds watchdog = Seconds{10}) {
  InProcessTransport transport({.ranks = 10 + members, .watchdog = watchdog}, monotonic_clock());
  std::vector<int> ranks(static_cast<std::size_t>(members));
  std::iota(ranks.begin(), ranks.end(), 10);
  std::mutex mutex;
  std::vector<std::string> errors;
  std::vector<std::thread> threads;
  for (const int rank : ranks)
    threads.emplace_back([&, rank] {
      Communicator communicator(transport, {"test group", ranks}, rank, monotonic_clock(), algorithm);
      try {
        work(communicator);
      } catch (const RunAborted&) {
      } catch (const RunError& error) {
        const std::lock_guard lock(mutex);
        errors.emplace_back(error.what());
        transport.abort(error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

/// Returns a whole number. All sums stay below 2^24, so that every order of addition gives the same bits.
float value_of(int member, std::size_t element) {
  return static_cast<float>(100 * (member + 1)) + static_cast<float>(element % 83);
}

MemberBuffers filled_buffers(int members, std::size_t elements) {
  MemberBuffers buffers(static_cast<std::size_t>(members), std::vector<float>(elements));
  for (int member = 0; member < members; ++member)
    for (std::size_t i = 0; i < elements; ++i) buffers[static_cast<std::size_t>(member)][i] = value_of(member, i);
  return buffers;
}

std::vector<float> summed(const MemberBuffers& buffers) {
  std::vector<float> sum(buffers[0].size(), 0);
  for (const auto& buffer : buffers)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += buffer[i];
  return sum;
}

/// Returns each member's block of its own buffer, one after the other.
std::vector<float> gathered(const MemberBuffers& buffers) {
  std::vector<float> all;
  const int n = static_cast<int>(buffers.size());
  const auto elements = static_cast<std::int64_t>(buffers[0].size());
  for (int member = 0; member < n; ++member)
    for (std::int64_t i = block_begin(elements, n, member); i < block_begin(elements, n, member + 1); ++i)
      all.push_back(buffers[static_cast<std::size_t>(member)][static_cast<std::size_t>(i)]);
  return all;
}

/// Runs a collective over buffers filled by value_of and returns the buffers afterwards.
MemberBuffers after(int members, std::size_t elements, CollectiveAlgorithm algorithm,
                    const std::function<Collective(std::span<float>)>& collective) {
  MemberBuffers buffers = filled_buffers(members, elements);
  const std::vector<std::string> errors = as_members(members, algorithm, [&](Communicator& communicator) {
    communicator.run(collective(buffers[static_cast<std::size_t>(communicator.member())]));
  });
  CHECK(errors.empty());
  return buffers;
}

}  // namespace

TEST_CASE("every collective does what its name says, by ring and by tree, in groups of 1 to 9 and for any size") {
  for (const CollectiveAlgorithm algorithm : kAlgorithms)
    for (int n = 1; n <= 9; ++n)
      for (const std::size_t elements : {0UL, 1UL, 5UL, 9UL, 131UL}) {
        CAPTURE(n);
        CAPTURE(elements);
        CAPTURE(algorithm_name(algorithm));
        const MemberBuffers before = filled_buffers(n, elements);
        const auto run = [&](auto collective) { return after(n, elements, algorithm, collective); };
        const MemberBuffers everyone_sum(static_cast<std::size_t>(n), summed(before));
        CHECK(run([](auto values) { return all_reduce(values); }) == everyone_sum);
        const MemberBuffers everyone_all(static_cast<std::size_t>(n), gathered(before));
        CHECK(run([](auto values) { return all_gather(values); }) == everyone_all);
        CHECK(gathered(run([](auto values) { return reduce_scatter(values); })) == summed(before));
        for (const int root : std::set<int>{0, n / 2, n - 1}) {
          const auto at_root = static_cast<std::size_t>(root);
          CAPTURE(root);
          CHECK(run([&](auto values) { return broadcast(values, root); }) ==
                MemberBuffers(static_cast<std::size_t>(n), before[at_root]));
          CHECK(gathered(run([&](auto values) { return scatter(values, root); })) == before[at_root]);
          CHECK(run([&](auto values) { return gather(values, root); })[at_root] == gathered(before));
          CHECK(run([&](auto values) { return reduce(values, root); })[at_root] == summed(before));
        }
      }
}

TEST_CASE("blocks may have any sizes, some of them none") {
  const std::vector<std::int64_t> bounds = {0, 3, 3, 8};
  for (const CollectiveAlgorithm algorithm : kAlgorithms) {
    const MemberBuffers all = after(3, 8, algorithm, [&](auto values) { return all_gather(values, bounds); });
    CHECK(all == MemberBuffers(3, {100, 101, 102, 303, 304, 305, 306, 307}));
    const MemberBuffers sums = after(3, 8, algorithm, [&](auto values) { return reduce_scatter(values, bounds); });
    CHECK(std::vector<float>(sums[0].begin(), sums[0].begin() + 3) == std::vector<float>{600, 603, 606});
    CHECK(std::vector<float>(sums[2].begin() + 3, sums[2].end()) == std::vector<float>{609, 612, 615, 618, 621});
  }
}

TEST_CASE("all_to_all takes block i to member i, whatever the blocks' sizes") {
  for (int n = 1; n <= 9; ++n) {
    const auto size_of = [](int from, int to) { return (3 * from + to) % 4; };
    const auto errors = as_members(n, CollectiveAlgorithm::kRing, [&](Communicator& communicator) {
      const int me = communicator.member();
      std::vector<std::int64_t> outgoing_bounds = {0}, incoming_bounds = {0};
      std::vector<float> outgoing, expected;
      for (int other = 0; other < n; ++other) {
        outgoing.insert(outgoing.end(), static_cast<std::size_t>(size_of(me, other)), float(100 * me + other));
        expected.insert(expected.end(), static_cast<std::size_t>(size_of(other, me)), float(100 * other + me));
        outgoing_bounds.push_back(std::ssize(outgoing));
        incoming_bounds.push_back(std::ssize(expected));
      }
      std::vector<float> incoming(expected.size(), -1);
      communicator.run(all_to_all(incoming, outgoing, incoming_bounds, outgoing_bounds));
      if (incoming != expected) throw RunError("wrong values");
    });
    CHECK(errors.empty());
  }
}

TEST_CASE("a shift goes round the ring, forth and back") {
  for (const int n : {1, 2, 5})
    for (const int distance : {1, -1, 2, 5}) {
      std::vector<float> received(static_cast<std::size_t>(n));
      const auto errors = as_members(n, CollectiveAlgorithm::kRing, [&](Communicator& communicator) {
        const float mine = float(communicator.member());
        communicator.run(shift({&received[static_cast<std::size_t>(communicator.member())], 1}, {&mine, 1}, distance));
      });
      CHECK(errors.empty());
      for (int member = 0; member < n; ++member)
        CHECK(received[static_cast<std::size_t>(member)] == float(((member - distance) % n + n) % n));
    }
}

TEST_CASE("sums have the same bits every time and on every member, whoever comes first") {
  for (const CollectiveAlgorithm algorithm : kAlgorithms) {
    std::vector<float> first;
    for (int repeat = 0; repeat < 20; ++repeat) {
      MemberBuffers buffers(5, std::vector<float>(1001));
      for (std::size_t member = 0; member < 5; ++member)
        for (std::size_t i = 0; i < 1001; ++i) buffers[member][i] = 1.0F / float(1 + i * (member + 1));
      as_members(5, algorithm, [&](Communicator& communicator) {
        if ((communicator.member() + repeat) % 5 < 2) std::this_thread::yield();
        communicator.run(all_reduce(buffers[static_cast<std::size_t>(communicator.member())]));
      });
      if (first.empty()) first = buffers[0];
      for (const auto& buffer : buffers) CHECK(buffer == first);
    }
  }
}

TEST_CASE("what is started goes on beside its rank, in the order in which it was started") {
  // Every member waits for its tickets in the reverse order: without progress behind its back no member would get on.
  // More are under way than a communicator has room for at first.
  for (const CollectiveAlgorithm algorithm : kAlgorithms) {
    const auto errors = as_members(3, algorithm, [&](Communicator& communicator) {
      for (int round = 0; round < 3; ++round) {
        constexpr int kOpen = 21;
        MemberBuffers buffers(kOpen);
        std::vector<CollectiveTicket> tickets;
        for (int i = 0; i < kOpen; ++i) {
          buffers[static_cast<std::size_t>(i)].assign(7, float(i));
          tickets.push_back(communicator.start(all_reduce(buffers[static_cast<std::size_t>(i)])));
        }
        TransferTimes later{.start = SimTime::max()};
        for (int i = kOpen; i-- > 0;) {
          const TransferTimes times = communicator.wait(tickets[static_cast<std::size_t>(i)]);
          if (times.end > later.start || times.start > times.end) throw RunError("out of order");
          later = times;
          if (buffers[static_cast<std::size_t>(i)] != std::vector<float>(7, float(3 * i)))
            throw RunError("wrong values");
        }
        std::vector<float> one = {1};
        const CollectiveTicket before = communicator.start(all_reduce(one));
        std::vector<float> two = {2};
        communicator.run(all_reduce(two));  // runs behind the started one
        if (one[0] != 3 || two[0] != 6) throw RunError("wrong values");
        communicator.wait(before);
      }
    });
    CHECK(errors == std::vector<std::string>{});
  }
}

TEST_CASE("a collective of one work goes on while the other of two works that take turns computes") {
  std::atomic<bool> other_has_computed = false;
  MemberBuffers buffers = filled_buffers(2, 100);
  const std::vector<float> sum = summed(buffers);
  const auto errors = as_members(2, CollectiveAlgorithm::kRing, [&](Communicator& communicator) {
    PairTurns turns;
    communicator.take_turns(turns);
    std::vector<float>& own = buffers[static_cast<std::size_t>(communicator.member())];
    if (communicator.member() == 0) {
      // The other member comes only when the second work has computed, so that the first must not wait before.
      turns.run([&] { communicator.run(all_reduce(own)); }, [&] { other_has_computed = true; });
    } else {
      while (!other_has_computed) std::this_thread::yield();
      communicator.run(all_reduce(own));
    }
  });
  CHECK(errors.empty());
  for (const auto& buffer : buffers) CHECK(buffer == sum);
}

TEST_CASE("a collective waits for the member that comes last") {
  InProcessTransport transport({.ranks = 2, .watchdog = Seconds{10}}, monotonic_clock());
  const CommunicatorGroup group{"pair", {0, 1}};
  std::vector<float> a = {1}, b = {2};
  Communicator first(transport, group, 0, monotonic_clock()), second(transport, group, 1, monotonic_clock());
  const CollectiveTicket early = first.start(all_reduce(a));
  const CollectiveTicket late = second.start(all_reduce(b));
  first.wait(early);
  second.wait(late);
  CHECK(a[0] == 3);
  CHECK(b[0] == 3);
}

TEST_CASE("members that disagree about the collective, its size or its root are told so by group, rank and name") {
  const auto errors_of = [](const std::function<void(Communicator&, std::span<float>)>& work) {
    return as_members(2, CollectiveAlgorithm::kRing, [&](Communicator& communicator) {
      std::vector<float> values(6);
      work(communicator, values);
    });
  };
  const auto kinds = errors_of([](Communicator& communicator, std::span<float> values) {
    communicator.run(all_reduce(values));
    communicator.run(communicator.member() == 0 ? broadcast(values, 0) : all_gather(values));
  });
  REQUIRE(!kinds.empty());  // errors of either rank, or of both
  for (const char* part :
       {"test group (ranks 10, 11): rank 1", "at collective 1, all_gather (ring) of 6 values",
        "at collective 1, broadcast (ring) of 6 values from member 0", ": the members' lists disagree"})
    CHECK_MESSAGE(has(kinds[0], part), kinds[0]);
  const auto sizes = errors_of([](Communicator& communicator, std::span<float> values) {
    communicator.run(all_reduce(values.first(communicator.member() == 0 ? 6 : 5)));
  });
  REQUIRE(!sizes.empty());
  CHECK_MESSAGE(has(sizes[0], "all_reduce (ring) of 5 values"), sizes[0]);
  CHECK(has(sizes[0], "all_reduce (ring) of 6 values"));
  const auto roots = errors_of([](Communicator& communicator, std::span<float> values) {
    communicator.wait(communicator.start(broadcast(values, communicator.member())));
  });
  REQUIRE(!roots.empty());
  CHECK_MESSAGE(has(roots[0], "from member 0"), roots[0]);
  CHECK(has(roots[0], "from member 1"));
  const auto blocks = errors_of([](Communicator& communicator, std::span<float> values) {
    const std::vector<std::int64_t> bounds = {0, communicator.member() == 0 ? 2 : 3, 6};
    std::vector<float> incoming(6);
    communicator.run(all_to_all(incoming, values, bounds, bounds));
  });
  REQUIRE(!blocks.empty());
  CHECK_MESSAGE(has(blocks[0], "in collective 0, all_to_all, rank 1"), blocks[0]);
}

TEST_CASE("a member that never comes is named when nothing has moved for the watchdog's time") {
  for (const bool started : {false, true}) {
    const auto errors = as_members(
        2, CollectiveAlgorithm::kTree,
        [&](Communicator& communicator) {
          std::vector<float> values(3);
          if (communicator.member() == 1) return;
          if (started)
            communicator.wait(communicator.start(all_reduce(values)));
          else
            communicator.run(all_reduce(values));
        },
        Seconds{0.05});
    REQUIRE(errors.size() == 1);
    CHECK(errors[0] ==
          "nothing moved for 0.05 s while rank 10 waited for rank 11 in collective 0 of the test group (ranks 10, 11), "
          "all_reduce (tree) of 3 values");
  }
}

TEST_CASE("an abort ends collectives under way, and those that are left alone") {
  InProcessTransport transport({.ranks = 2, .watchdog = Seconds{10}}, monotonic_clock());
  std::vector<float> values(3);
  Communicator communicator(transport, {"pair", {0, 1}}, 0, monotonic_clock());
  const CollectiveTicket ticket = communicator.start(all_reduce(values));
  const CollectiveTicket left_alone = communicator.start(all_reduce(values));
  transport.abort("rank 1 gave up");
  CHECK_THROWS_WITH_AS(communicator.wait(ticket), "rank 1 gave up", RunAborted);
  CHECK(left_alone.is_open());
  CHECK_THROWS_AS(communicator.run(all_reduce(values)), RunAborted);
}

}  // namespace plumb::test
