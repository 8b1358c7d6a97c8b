#include "planner/evaluate/pipeline_hops.h"

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"

namespace plumb::test {

using Hops = std::vector<std::pair<int, int>>;

TEST_CASE("messages go both ways between neighbouring ranks") {
  CHECK(pipeline_hops(make_schedule("1f1b", {.ranks = 3, .microbatches = 4})) == Hops{{0, 1}, {1, 0}, {1, 2}, {2, 1}});
  CHECK(pipeline_hops(make_schedule("1f1b", {.ranks = 1, .microbatches = 4})).empty());
}

TEST_CASE("stages that follow each other on one rank exchange nothing") {
  // ZB-V turns on the last rank: 0 1 1 0.
  CHECK(pipeline_hops(make_schedule("zb-v", {.ranks = 2, .microbatches = 4})) == Hops{{0, 1}, {1, 0}, {1, 0}, {0, 1}});
}

}  // namespace plumb::test
