#include "simulator/network/engine/collective_meetings.h"

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "tests/simulator/network/networks.h"

namespace plumb::test {

TEST_SUITE("collective_meetings") {
  TEST_CASE("a collective begins with the last of its group, and one without a group has none to wait for") {
    const Schedule schedule = parse_schedule("0F0 0B0 0REDUCE_GRAD 0OPTIMIZER_STEP\n", "");
    const CostTable costs = whole_costs(1, 1, 1);
    NetworkSpec network{.replicas = 3};
    network.collectives = {{.op = Op::kReduceGrad, .stage = 0, .replicas = {0, 2}}};
    const EventProgram program = event_program(schedule, costs, network, Sends::kBuffered);
    CollectiveMeetings meetings(schedule, program, network);
    CHECK(meetings.group_of(2) == 0);
    CHECK(meetings.group_of(4 + 2) == -1);
    CHECK(meetings.group_of(8 + 2) == 0);
    CHECK(!meetings.come(0, 8 + 2));
    CHECK(meetings.come(0, 2));
  }

  TEST_CASE("a group inside actions meets again and again, in each lane by itself") {
    const Schedule schedule = parse_schedule("0F0 0B0\n", "");
    NetworkSpec network{.replicas = 2};
    network.inner = {{.stage = 0, .replicas = {0, 1}}};
    const EventProgram program = event_program(schedule, whole_costs(1, 1, 1), network, Sends::kBuffered);
    CollectiveMeetings meetings(schedule, program, network);
    for (int round = 0; round < 2; ++round) {
      CHECK(!meetings.come_inside(0, LaneKind::kBlocking));
      CHECK(!meetings.come_inside(0, LaneKind::kBeside));
      CHECK(meetings.come_inside(0, LaneKind::kBlocking));
      CHECK(meetings.come_inside(0, LaneKind::kBeside));
    }
  }
}

}  // namespace plumb::test
