#include "executor/program/weight_versions.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"

namespace plumb::test {

using Table = std::vector<std::vector<int>>;

TEST_CASE("in a synchronous schedule every micro-batch uses version 0 and belongs to batch 0") {
  const WeightVersions versions = weight_versions(lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 3})));
  CHECK(versions.version == Table{{0, 0, 0}, {0, 0, 0}});
  CHECK(versions.batch == Table{{0, 0, 0}, {0, 0, 0}});
}

TEST_CASE("PipeDream's stage s uses the version max(0, t - (p-1-s)) for micro-batch t") {
  // p-1-s micro-batches go forward on stage s before its first update.
  const WeightVersions versions = weight_versions(make_schedule("pipedream", {.ranks = 3, .microbatches = 5}));
  CHECK(versions.version == Table{{0, 0, 0, 1, 2}, {0, 0, 1, 2, 3}, {0, 1, 2, 3, 4}});
  CHECK(versions.batch == Table{{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}});
}

TEST_CASE("with vertical sync every stage uses the first stage's version") {
  Schedule schedule = make_schedule("pipedream", {.ranks = 3, .microbatches = 5});
  schedule.weights = WeightPolicy::kVerticalSync;
  CHECK(weight_versions(schedule).version == Table(3, {0, 0, 0, 1, 2}));
}

TEST_CASE("with two buffers batch t uses version max(0, t-1)") {
  Schedule schedule = make_schedule("pipedream", {.ranks = 2, .microbatches = 4});
  schedule.weights = WeightPolicy::kTwoBuffered;
  CHECK(weight_versions(schedule).version == Table(2, {0, 0, 1, 2}));
}

TEST_CASE("weights that change under way are refused where the policy is 'current'") {
  Schedule schedule = make_schedule("pipedream", {.ranks = 2, .microbatches = 3});
  schedule.weights = WeightPolicy::kCurrent;
  CHECK_THROWS_WITH_AS(weight_versions(schedule), doctest::Contains("stage 0 change between forward and backward"),
                       ScheduleError);
}

TEST_CASE("a version that is not made in time is refused") {
  // F2 on the first of three ranks wants version 1 before any update if batches have one micro-batch.
  Schedule schedule = make_schedule("pipedream", {.ranks = 3, .microbatches = 4});
  schedule.weights = WeightPolicy::kTwoBuffered;
  CHECK_THROWS_WITH_AS(weight_versions(schedule),
                       doctest::Contains("micro-batch 2 needs version 1 of the weights of stage 0, which has made 0"),
                       ScheduleError);
}

}  // namespace plumb::test
