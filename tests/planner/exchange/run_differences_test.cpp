#include "planner/exchange/run_differences.h"

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("what a run says otherwise than the plan is named, and what it leaves open is not") {
  const Plan plan{.model = small_gpt(),
                  .cluster = round_cluster(8),
                  .training = kSmallTraining,
                  .layout = {.data = 4, .tensor = 2}};
  ReadRun run;
  run.layout.tensor = 2;
  run.global_batch = 16;
  CHECK(run_differences(run, plan).empty());
  run.layout.tensor = 4;
  run.sequence = 1024;
  CHECK(run_differences(run, plan) ==
        std::vector<std::string>{"seq is 1024 there, and 512 in the plan", "tp is 4 there, and 2 in the plan"});
}

}  // namespace plumb::test
