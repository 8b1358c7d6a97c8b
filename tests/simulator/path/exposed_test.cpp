#include "simulator/path/exposed.h"

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "simulator/network/simulate_network.h"
#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

void set_segments(CostTable& costs, int stage, Op op, std::vector<Segment> segments) {
  costs.stages[stage].segments[static_cast<std::size_t>(op)] = {std::move(segments)};
}

Segment computing(double seconds) {
  return {.seconds = Seconds{seconds}};
}

Segment timed_collective(Group group, double seconds, bool beside = false) {
  return {.kind = Segment::Kind::kCollective, .seconds = Seconds{seconds}, .beside = beside, .group = group};
}

SimTime in_group(const ExposedTime& time, Group group) {
  return time.collectives[static_cast<std::size_t>(group)];
}

std::vector<ExposedTime> exposed_of(const CostTable& costs, const Timeline& timeline) {
  return exposed_by_rank(costs, timeline, idle_by_cause(timeline));
}

/// Returns random costs with collectives in every compute action, some of them beside the computing.
CostTable with_collectives(CostTable costs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (StageCosts& stage : costs.stages) {
    for (const Op op : {Op::kForward, Op::kBackward, Op::kInputGrad, Op::kWeightGrad, Op::kOptimizerStep}) {
      for (auto& segments : stage.segments[static_cast<std::size_t>(op)]) {
        for (const Group group : {Group::kTensor, Group::kContext, Group::kExpert})
          segments.push_back(timed_collective(group, static_cast<double>(random() % 500) * 1e-12, random() % 2 == 0));
      }
    }
  }
  return costs;
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("what blocks an action is exposed, what runs beside it only as far as it outlasts the rest") {
    const Schedule schedule = parse_schedule("0F0 0B0\n");
    CostTable costs = whole_costs(1, 0, 0);
    set_segments(costs, 0, Op::kForward,
                 {computing(5), timed_collective(Group::kTensor, 2), timed_collective(Group::kExpert, 3, true)});
    set_segments(costs, 0, Op::kBackward, {computing(4), timed_collective(Group::kContext, 6, true)});
    const ExposedTime time = exposed_of(costs, simulate(schedule, costs).timeline)[0];
    CHECK(time.computing == 9 * kSecond);
    CHECK(in_group(time, Group::kTensor) == 2 * kSecond);
    CHECK(in_group(time, Group::kExpert) == SimTime{0});  // 3 s beside 7 s
    CHECK(in_group(time, Group::kContext) == 2 * kSecond);
    CHECK(total(time) == 13 * kSecond);
  }

  TEST_CASE("messages, gathers, reductions and moves are told apart, also behind the last compute action") {
    CostTable costs = whole_costs(1, 1, 2);
    set_segments(costs, 0, Op::kUnshard, {timed_collective(Group::kData, 3)});
    set_segments(costs, 0, Op::kReduceGrad, {timed_collective(Group::kData, 2)});
    // UNSHARD [0,3] F0 [3,4] B0 [4,6] REDUCE_GRAD [6,8] UNSHARD [6,9]: of the last two, the reduction is first
    const Schedule order = parse_schedule("0UNSHARD 0F0 0B0 0RESHARD 0REDUCE_GRAD 0UNSHARD\n");
    const Simulation result = simulate(order, costs, {.validate = false});
    CHECK(result.makespan == 9 * kSecond);
    const ExposedTime time = exposed_of(costs, result.timeline)[0];
    CHECK(time.computing == 3 * kSecond);
    CHECK(time.waiting == SimTime{0});
    CHECK(time.reductions == 2 * kSecond);
    CHECK(time.gathers == (3 + 1) * kSecond);
    CHECK(total(time) == result.makespan);

    const Schedule hop = lower(parse_schedule("0F0 0B0\n1F0 1B0\n"));
    const CostTable far = whole_costs(2, 1, 2, 0.5);
    const auto ranks = exposed_of(far, simulate(hop, far).timeline);
    CHECK(ranks[0].messages == kSecond / 2);  // of the 4 s between F0 and B0, the gradient's way
    CHECK(ranks[0].waiting == 3 * kSecond + kSecond / 2);
    const auto path = exposed_on_path(hop, far, simulate(hop, far).critical_path);
    CHECK(path[0].messages == kSecond / 2);
    CHECK(path[1].messages == kSecond / 2);
    CHECK(path[0].computing + path[1].computing == 6 * kSecond);

    CostTable moved = whole_costs(1, 1, 2);
    set_segments(moved, 0, Op::kOffload, {computing(1)});
    set_segments(moved, 0, Op::kReload, {computing(4)});
    const Schedule away = parse_schedule("0F0 0OFFLOAD0 0F1 0RELOAD0 0B0 0B1\n");
    const ExposedTime reload = exposed_of(moved, simulate(away, moved).timeline)[0];
    CHECK(reload.moves == 4 * kSecond);  // issued at the end of F1, B0 waits for it
    CHECK(reload.waiting == SimTime{0});
  }
}

TEST_SUITE("property") {
  TEST_CASE("every rank's time adds up to the makespan, and so does the critical path's, to the picosecond") {
    std::vector<Schedule> schedules = all_lowered(4, 6, 1);
    for (const char* name : {"1f1b", "gpipe", "interleaved"}) {
      const Schedule order = make_schedule(name, {.ranks = 4, .microbatches = 8});
      schedules.push_back(lower(order, {.checkpoint = Checkpoint::kAlways, .offload = 1}));
      for (int zero = 0; zero <= 3; ++zero)
        schedules.push_back(lower(order, {.data = {.enabled = true, .zero = zero}}));
    }
    for (const Schedule& schedule : schedules) {
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CAPTURE(schedule.name);
        CAPTURE(seed);
        const CostTable costs = with_collectives(random_costs(schedule, seed), seed);
        const Simulation result = simulate(schedule, costs);
        const auto ranks = exposed_of(costs, result.timeline);
        for (std::size_t r = 0; r < ranks.size(); ++r) {
          REQUIRE(total(ranks[r]) == result.makespan);
          REQUIRE(ranks[r].waiting >= SimTime{0});
          SimTime inside = ranks[r].computing;
          for (const SimTime group : ranks[r].collectives) inside += group;
          REQUIRE(inside == result.busy[r]);
        }
        SimTime path{0};
        for (const ExposedTime& time : exposed_on_path(schedule, costs, result.critical_path)) {
          path += total(time);
          REQUIRE(time.waiting == SimTime{0});
        }
        REQUIRE(path == result.makespan);
      }
    }
  }

  TEST_CASE("so does the time of slow ranks, whose actions are divided as their costs are") {
    const Schedule schedule = lowered("1f1b", 4, 8);
    const CostTable costs = with_collectives(random_costs(schedule, 1), 1);
    const NetworkSpec slow{.speeds = {1, 0.7, 1, 0.9}};
    const Simulation result = simulate(schedule, costs, slow);
    REQUIRE(result.engine == "events");
    for (const ExposedTime& time : exposed_of(costs, result.timeline)) CHECK(total(time) == result.makespan);
  }
}

}  // namespace plumb::test
