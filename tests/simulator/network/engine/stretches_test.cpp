#include "simulator/network/engine/stretches.h"

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

Segment exchange(double seconds, bool beside = false) {
  return {.kind = Segment::Kind::kCollective, .seconds = Seconds{seconds}, .beside = beside, .bytes = 6};
}

std::vector<SimTime> lengths(const Stretches& stretches, std::int32_t phase, LaneKind lane) {
  std::vector<SimTime> result;
  const Phase& p = stretches.phases[phase];
  for (auto i = p.first[static_cast<std::size_t>(lane)]; i < p.first[static_cast<std::size_t>(lane) + 1]; ++i)
    result.push_back(stretches.stretches[i].lasts);
  return result;
}

}  // namespace

TEST_SUITE("stretches") {
  using Lengths = std::vector<SimTime>;

  TEST_CASE("an action is cut at its collectives, what blocks it and what runs beside it apart") {
    const Schedule schedule = parse_schedule("0F0 0F1 0B0 0B1\n", "");
    CostTable costs = whole_costs(1, 1, 2);
    auto& forward = costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)].front();
    forward = {
        {.seconds = Seconds{1}}, {.seconds = Seconds{2}}, exchange(3), {.seconds = Seconds{4}}, exchange(5, true)};
    NetworkSpec network{.links = {{"port", 1}}, .routes = {{.uses = {{0, 1}}}}};
    network.inner = {{.stage = 0, .replicas = {0}, .route = 0}};
    const Stretches cut = stretches_of(schedule, costs, network, inner_classes(network), {});
    CHECK(cut.plan_of == std::vector<std::int32_t>{0, 0, -1, -1});
    CHECK(lengths(cut, 0, LaneKind::kBlocking) == Lengths{3 * kSecond, 3 * kSecond, 4 * kSecond});
    CHECK(lengths(cut, 0, LaneKind::kBeside) == Lengths{5 * kSecond});
    CHECK(cut.stretches[1].bytes_per_second == 2);
    CHECK(cut.stretches[0].computes);
  }

  TEST_CASE("a pair of two stages is two phases, with the exchanges of each beside the compute of the other") {
    const Schedule schedule = parse_schedule("0F0 1F0 0F1&1B0 1F1 1B1 0B0 0B1\n", "");
    CostTable costs = whole_costs(2, 4, 8);
    costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)].front().push_back(exchange(2));
    costs.stages[1].segments[static_cast<std::size_t>(Op::kBackward)].front().push_back(exchange(6));
    NetworkSpec network{.links = {{"port", 1}}, .routes = {{.uses = {{0, 1}}}}};
    network.inner = {{.stage = 0, .replicas = {0}, .route = 0}, {.stage = 1, .replicas = {0}, .route = 0}};
    const Stretches cut = stretches_of(schedule, costs, network, inner_classes(network), {});
    const auto first = cut.first_phase[cut.plan_of[2]];
    CHECK(cut.first_phase[cut.plan_of[2] + 1] == first + 2);
    CHECK(lengths(cut, first, LaneKind::kBlocking) == Lengths{4 * kSecond});
    CHECK(lengths(cut, first, LaneKind::kBeside) == Lengths{6 * kSecond});
    CHECK(lengths(cut, first + 1, LaneKind::kBlocking) == Lengths{8 * kSecond});
    CHECK(lengths(cut, first + 1, LaneKind::kBeside) == Lengths{2 * kSecond});
    CHECK(cut.stretches[cut.phases[first].first[1]].action == 1);
    CHECK(cut.stretches[cut.phases[first].first[1]].inner_class ==
          inner_classes(network).number.at({1, Group::kTensor, CollectiveKind::kAllReduce}));
  }

  TEST_CASE("a stretch ends where a bucket is complete, a pair that takes no turns is two phases") {
    const Schedule schedule = parse_schedule("0F0 0F1 0B0&0B1\n", "");
    CostTable costs = whole_costs(1, 2, 4);
    costs.stages[0].segments[static_cast<std::size_t>(Op::kBackward)].front().push_back(exchange(1));
    NetworkSpec network{.links = {{"port", 1}}, .routes = {{.uses = {{0, 1}}}}};
    network.inner = {{.stage = 0, .replicas = {0}, .route = 0}};
    const Stretches cut = stretches_of(schedule, costs, network, inner_classes(network),
                                       {{2, {SimTime{3 * kSecond}, SimTime{10 * kSecond}}}});
    REQUIRE(cut.phases.size() == 2);
    CHECK(lengths(cut, 0, LaneKind::kBlocking) == Lengths{3 * kSecond, kSecond, kSecond});
    CHECK(lengths(cut, 1, LaneKind::kBlocking) == Lengths{4 * kSecond, kSecond});
    CHECK(cut.stretches.front().completes_bucket);
    CHECK(cut.stretches.back().completes_bucket);
    CHECK(cut.stretches.back().until == 10 * kSecond);
  }

  TEST_CASE("nothing is cut where no collective can be held up and no rank is slow") {
    const Schedule schedule = parse_schedule("0F0 0B0\n", "");
    CostTable costs = whole_costs(1, 4, 2);
    costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)].front().push_back(exchange(1));
    NetworkSpec network;
    network.inner = {{.stage = 0, .replicas = {0}}};
    CHECK(stretches_of(schedule, costs, network, inner_classes(network), {}).plan_of.empty());
    network.speeds = {0.5};
    CHECK(stretches_of(schedule, costs, network, inner_classes(network), {}).plan_of.size() == 2);
  }
}

}  // namespace plumb::test
