#include "executor/program/device/joint_calls.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "executor/program/device/plan_device.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "tests/executor/program/device/check_device_program.h"

namespace plumb::test {
namespace {

const Action& action_of(const Schedule& schedule, std::int32_t id) {
  const ActionPlace place = place_of(action_ids(schedule), id);
  return schedule.ranks[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.position)];
}

}  // namespace

TEST_CASE("copies of a stage reduce and gather in one call, which stands behind all of them") {
  for (const std::string name : {"chimera", "dualpipe"})
    for (const int zero : {0, 1, 2, 3}) {
      CAPTURE(name);
      CAPTURE(zero);
      const Schedule lowered =
          lower(make_schedule(name, {.ranks = 4, .microbatches = 8}), {.data = {.enabled = true, .zero = zero}});
      const std::vector<std::int32_t> leaders = joint_leaders(lowered);
      int joined = 0;
      for (std::size_t id = 0; id < leaders.size(); ++id) {
        const Action &own = action_of(lowered, static_cast<std::int32_t>(id)), &first = action_of(lowered, leaders[id]);
        const bool is_joint = own.op == Op::kReduceGrad || own.op == Op::kUnshard;
        CHECK(own.op == first.op);
        CHECK(lowered.stages[static_cast<std::size_t>(own.stage)].model_part ==
              lowered.stages[static_cast<std::size_t>(first.stage)].model_part);
        if (!is_joint) CHECK(leaders[id] == static_cast<std::int32_t>(id));
        joined += leaders[id] == static_cast<std::int32_t>(id) ? 0 : 1;
      }
      CHECK(joined > 0);
      CostTable costs = chunk_cost_table(static_cast<int>(lowered.stages.size()), {});
      for (StageCosts& stage : costs.stages) {
        stage.memory = {.forward_bytes = 1000, .forward_workspace_bytes = 300};
        stage.memory.unsharded_bytes = 700;
        stage.activation_message_bytes = stage.gradient_message_bytes = 100;
      }
      const std::vector<DeviceStageBytes> gradients(lowered.stages.size(), {.whole_gradients = zero < 2 ? 0 : 600});
      DeviceProgram program = plan_device(lowered, costs, false, DeviceWaits::kNeeded, gradients);
      for (const std::string& finding : check_device_program(program, lowered)) FAIL_CHECK(finding);
      int missed = 0;
      for (DeviceCall& call : program.calls)
        for (std::size_t i = 0; i < call.waits.size(); ++i) {
          const std::vector<DeviceWait> all = call.waits;
          call.waits.erase(call.waits.begin() + static_cast<std::ptrdiff_t>(i));
          if (check_device_program(program, lowered).empty()) ++missed;
          call.waits = all;
        }
      CHECK(missed == 0);
    }
}

TEST_CASE("without copies every action is alone") {
  const Schedule lowered =
      lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = 3}});
  const std::vector<std::int32_t> leaders = joint_leaders(lowered);
  for (std::size_t id = 0; id < leaders.size(); ++id) CHECK(leaders[id] == static_cast<std::int32_t>(id));
}

TEST_CASE("layer by layer passes of copies of a stage are one call on all of their ranks, without a race") {
  for (const std::string name : {"chimera", "dualpipe"})
    for (const JointPasses passes : {JointPasses::kWeightGrads, JointPasses::kAll}) {
      CAPTURE(name);
      const bool all = passes == JointPasses::kAll;
      const Schedule lowered =
          lower(make_schedule(name, {.ranks = 4, .microbatches = 8}), {.data = {.enabled = true, .zero = all ? 3 : 2}});
      const std::vector<std::int32_t> leaders = joint_leaders(lowered, passes);
      int joined = 0;
      for (std::size_t id = 0; id < leaders.size(); ++id) {
        const Action& own = action_of(lowered, static_cast<std::int32_t>(id));
        if (!is_compute(own.op) || own.op == Op::kOptimizerStep) continue;
        joined += leaders[id] == static_cast<std::int32_t>(id) ? 0 : 1;
      }
      // One of two copies' passes is the leader; passes of an overlapped pair have one call in any case.
      CHECK(joined >= (all ? 4 * 8 : 4 * 8 / 2));
      CostTable costs = chunk_cost_table(static_cast<int>(lowered.stages.size()), {});
      for (StageCosts& stage : costs.stages) {
        stage.memory = {.forward_bytes = 1000, .forward_workspace_bytes = 300, .backward_workspace_bytes = 500};
        stage.activation_message_bytes = stage.gradient_message_bytes = 100;
      }
      const DeviceProgram program = plan_device(lowered, costs, false, DeviceWaits::kNeeded, {}, {}, passes);
      for (const std::string& finding : check_device_program(program, lowered, passes)) FAIL_CHECK(finding);
      CHECK(program.calls.size() < plan_device(lowered, costs).calls.size());
    }
}

TEST_CASE("passes of copies that are listed in another order do not meet") {
  Schedule lowered = lower(make_schedule("chimera", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true}});
  CHECK_NOTHROW(joint_leaders(lowered, JointPasses::kWeightGrads));
  std::vector<Action>& actions = lowered.ranks[1];
  const auto last =
      std::find_if(actions.rbegin(), actions.rend(), [](const Action& of) { return of.op == Op::kBackward; });
  last->op = Op::kWeightGrad;
  CHECK_THROWS_WITH_AS(joint_leaders(lowered, JointPasses::kWeightGrads), doctest::Contains("list their passes alike"),
                       ScheduleError);
}

}  // namespace plumb::test
