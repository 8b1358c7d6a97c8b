#include "simulator/path/path_length.h"

#include <cmath>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "tests/simulator/support.h"

namespace plumb::test {

TEST_SUITE("unit") {
  TEST_CASE("a path is as long as its actions, messages to their delivery; none has no length") {
    const Schedule schedule = lower(parse_schedule("0F0 0B0\n1F0 1B0\n"));
    const CostTable costs = whole_costs(2, 1, 2, 0.5);
    const Simulation result = simulate(schedule, costs);
    CHECK(path_length(schedule, costs, result.critical_path) == Seconds{1 + 0.5 + 1 + 2 + 0.5 + 2});
    CHECK(path_length(schedule, whole_costs(2, 10, 20, 5), result.critical_path) == Seconds{70});
    CHECK(path_length(schedule, costs, {}) == Seconds{0});
  }

  TEST_CASE("a message that only frees its channel counts without its latency") {
    // Two messages of 4 s on one link with a latency of 1 s: the second leaves when the first has left.
    const Schedule schedule = lower(parse_schedule("0F0 0F1\n1F0 1F1\n"));
    CostTable costs = whole_costs(2, 1, 2);
    costs.stages[0].activation_message_bytes = 4;
    costs.default_link = {.latency = Seconds{1}, .bytes_per_second = 1};
    const Simulation result = simulate(schedule, costs);
    CHECK(to_seconds(result.makespan) == Seconds{1 + 4 + 4 + 1 + 1});
    CHECK(path_length(schedule, costs, result.critical_path) == Seconds{11});
  }
}

TEST_CASE("a backward counts up to the bucket that starts inside it") {
  // F0 [0,1] B0 [1,5]; buckets complete at 2 and 5, each reduced for 6 s: [2,8] and [8,14]
  const Schedule schedule = parse_schedule("0F0 0REDUCE_GRAD 0REDUCE_GRAD/1 0B0 0OPTIMIZER_STEP\n");
  CostTable costs = whole_costs(1, 1, 4);
  costs.stages[0].segments[static_cast<std::size_t>(Op::kReduceGrad)] = {{Segment{.seconds = Seconds{6}}}};
  costs.stages[0].bucket_offsets = {Seconds{1}, Seconds{4}};
  const Simulation result = simulate(schedule, costs, {.validate = false});
  CHECK(to_seconds(result.makespan) == Seconds{14});
  CHECK(path_length(schedule, costs, result.critical_path) == Seconds{14});
}

TEST_SUITE("property") {
  TEST_CASE("the critical path is as long as the step, whatever the schedule, the costs and the sends") {
    std::vector<Schedule> schedules;
    for (const int chunks : {1, 2}) {
      for (Schedule& schedule : all_lowered(4, 6, chunks)) schedules.push_back(std::move(schedule));
    }
    for (const char* name : {"1f1b", "gpipe", "interleaved"}) {
      const Schedule order = make_schedule(name, {.ranks = 4, .microbatches = 8});
      schedules.push_back(lower(order, {.checkpoint = Checkpoint::kAlways, .offload = 1}));
      for (int zero = 0; zero <= 3; ++zero)
        schedules.push_back(lower(order, {.data = {.enabled = true, .zero = zero}}));
    }
    schedules.push_back(lower(parse_schedule("0F0 0F1 0F2 0B0&0F3 0B1 0B2 0B3\n1F0 1F1 1B0&1F2 1B1&1F3 1B2 1B3\n")));
    for (const Schedule& schedule : schedules) {
      for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
          CAPTURE(schedule.name);
          CAPTURE(seed);
          const CostTable costs = random_costs(schedule, seed);
          const Simulation result = simulate(schedule, costs, {.sends = sends});
          const double off =
              path_length(schedule, costs, result.critical_path).count() - to_seconds(result.makespan).count();
          // Each step of the path is rounded to a picosecond, of a message bytes and latency.
          REQUIRE(std::abs(off) <= 1.1e-12 * static_cast<double>(result.critical_path.size()));
        }
      }
    }
  }
}

}  // namespace plumb::test
