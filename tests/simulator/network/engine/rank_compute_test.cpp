#include "simulator/network/engine/rank_compute.h"

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

EventProgram one_backward(const NetworkSpec& network) {
  return event_program(parse_schedule("0F0 0B0\n", ""), whole_costs(1, 1, 2), network, Sends::kBuffered);
}

}  // namespace

TEST_SUITE("rank_compute") {
  TEST_CASE("work takes its time over the rank's speed, and none is over at once") {
    const NetworkSpec network{.speeds = {0.5}};
    const EventProgram program = one_backward(network);
    EventQueue events;
    RankCompute compute(program, network, 1, events);
    CHECK(compute.begin(0, {.work = 2 * kSecond}, {}, kSecond));
    CHECK(events.take().time == 5 * kSecond);
    CHECK(!compute.begin(0, {.work = SimTime{0}}, {}, kSecond));
    CHECK(events.empty());
  }

  TEST_CASE("beside a collective it goes on slower, and the earlier announced end is outdated") {
    const NetworkSpec network{.collective_slowdown = 1};
    const EventProgram program = one_backward(network);
    EventQueue events;
    RankCompute compute(program, network, 1, events);
    CHECK(compute.begin(1, {.work = 4 * kSecond}, {}, SimTime{0}));
    compute.change_collectives(1, 1, kSecond);  // 3 s of work left, at half speed
    const Event first = events.take();
    CHECK(first.time == 4 * kSecond);
    CHECK(compute.is_outdated(first));
    compute.change_collectives(1, -1, 3 * kSecond);  // 2 s left, at full speed
    const Event last = events.take();
    CHECK(last.time == 5 * kSecond);
    CHECK(!compute.is_outdated(last));
    CHECK(compute.is_outdated(events.take()));
    compute.end(1);
    CHECK(compute.is_outdated(last));
  }
}

}  // namespace plumb::test
