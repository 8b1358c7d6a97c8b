#include "schedules/dependencies/shards.h"

#include <doctest/doctest.h>

#include "schedules/dependencies/dependencies.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
namespace {

/// Two stages of layers on two ranks, and an output layer in two shards, stages 2 and 3.
const Schedule& two_shards() {
  static const Schedule schedule = parse_schedule(
      "stages: 0/0/0 1/1/0 0/2/0 1/2/0\n"
      "0F0 2F0 2B0 0B0\n"
      "1F0 3F0 3B0 1B0\n");
  return schedule;
}

/// Returns what an action waits for on other ranks, in the order of the ranks' lists.
std::vector<std::string> awaited_elsewhere(const Schedule& schedule, std::string_view token) {
  const Action wanted = parse_action(token).value();
  const ActionIds ids = action_ids(schedule);
  std::vector<std::string> awaited;
  for (const Dependency& dependency : dependencies(schedule)) {
    const ActionPlace from = place_of(ids, dependency.from), to = place_of(ids, dependency.to);
    if (from.rank == to.rank || schedule.ranks[to.rank][to.position] != wanted) continue;
    CHECK(dependency.wait == Wait::kOccupied);
    CHECK(dependency.reason == Reason::kMessage);
    awaited.push_back(to_text(schedule.ranks[from.rank][from.position]));
  }
  return awaited;
}

}  // namespace

TEST_CASE("stages of one lane with one model part are its shards, and no copies or neighbours") {
  const Shards shards = shards_of(two_shards());
  REQUIRE(shards.any());
  CHECK(shards.before == std::vector<std::vector<int>>{{}, {}, {1}, {1}});
  CHECK(shards.behind == std::vector<std::vector<int>>{{}, {2, 3}, {}, {}});
  CHECK(shards.siblings == std::vector<std::vector<int>>{{}, {}, {3}, {2}});
  CHECK(stage_neighbors(two_shards()).successor == std::vector<int>{1, -1, -1, -1});
  CHECK(stage_neighbors(two_shards()).predecessor == std::vector<int>{-1, 0, -1, -1});
  CHECK_FALSE(has_copies(two_shards()));
}

TEST_CASE("copies are no shards") {
  for (const char* name : {"chimera", "dualpipe", "gems"}) {
    const Schedule schedule = make_schedule(name, {.ranks = 4, .microbatches = 8});
    CHECK_FALSE(has_shards(schedule));
    CHECK_FALSE(shards_of(schedule).any());
    CHECK(has_copies(schedule));
  }
}

TEST_CASE("shards wait for the stage before and their softmax for each other, and the stage before for all of them") {
  for (const Schedule& schedule : {two_shards(), lower(two_shards())}) {
    CHECK(awaited_elsewhere(schedule, "2F0") == std::vector<std::string>{"1F0"});
    CHECK(awaited_elsewhere(schedule, "3F0").empty());  // on the rank of the stage before
    CHECK(awaited_elsewhere(schedule, "2B0") == std::vector<std::string>{"3F0"});
    CHECK(awaited_elsewhere(schedule, "3B0") == std::vector<std::string>{"2F0"});
    CHECK(awaited_elsewhere(schedule, "1B0") == std::vector<std::string>{"2B0"});
  }
}

TEST_CASE("the input gradient of a shard needs its own logits alone, that of its weights the sums of all") {
  const Schedule schedule = parse_schedule(
      "stages: 0/0/0 1/1/0 0/2/0 1/2/0\n"
      "0F0 2F0 2I0 2W0 0B0\n"
      "1F0 3F0 3I0 1B0 3W0\n");
  CHECK(awaited_elsewhere(schedule, "2I0").empty());
  CHECK(awaited_elsewhere(schedule, "2W0") == std::vector<std::string>{"3F0"});
  CHECK(awaited_elsewhere(schedule, "1B0") == std::vector<std::string>{"2I0"});
}

TEST_CASE("no message is sent to shards or from them") {
  const Schedule lowered = lower(two_shards());
  for (const std::vector<Action>& actions : lowered.ranks)
    for (const Action& action : actions)
      if (is_message(action.op)) CHECK(action.stage <= 1);
}

}  // namespace plumb::test
