#include "executor/program/device/replaced_weights.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "schedules/dependencies/dependencies.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"

namespace plumb::test {
namespace {

/// "B3@2": what stands behind the optimizer step with that number.
std::vector<std::string> users_of_replaced(const Schedule& schedule, std::size_t rank) {
  const std::vector<std::int32_t> replacers = weight_replacers(schedule);
  const std::size_t first = static_cast<std::size_t>(action_ids(schedule).first_id[rank]);
  std::vector<std::string> users;
  std::vector<std::int32_t> steps;
  for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
    const Action& action = schedule.ranks[rank][i];
    if (action.op == Op::kOptimizerStep) steps.push_back(static_cast<std::int32_t>(first + i));
    if (replacers[first + i] < 0) continue;
    const auto step = std::ranges::find(steps, replacers[first + i]) - steps.begin();
    users.push_back((action.op == Op::kForward ? "F" : "B") + std::to_string(action.microbatch) + "@" +
                    std::to_string(step));
  }
  return users;
}

}  // namespace

TEST_CASE("PipeDream's first stage works back with weights that were replaced behind the forward, its last never") {
  const Schedule schedule = lower(make_schedule("pipedream", {.ranks = 2, .microbatches = 4}));
  CHECK(users_of_replaced(schedule, 0) == std::vector<std::string>{"B1@0", "B2@1", "B3@2"});
  CHECK(users_of_replaced(schedule, 1).empty());
}

TEST_CASE("with vertical sync the last stage's forwards, too, work with replaced weights") {
  const Schedule schedule = lower(make_schedule("pipedream", {.ranks = 2, .microbatches = 4, .vertical_sync = true}));
  CHECK(users_of_replaced(schedule, 0) == std::vector<std::string>{"B1@0", "B2@1", "B3@2"});
  CHECK(users_of_replaced(schedule, 1) == std::vector<std::string>{"F1@0", "B1@0", "F2@1", "B2@1", "F3@2", "B3@2"});
}

TEST_CASE("in synchronous schedules nobody works with replaced weights") {
  const Schedule schedule = lower(make_schedule("zb-h1", {.ranks = 3, .microbatches = 6}));
  CHECK(std::ranges::all_of(weight_replacers(schedule), [](std::int32_t replacer) { return replacer == -1; }));
}

}  // namespace plumb::test
