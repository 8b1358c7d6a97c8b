#include "schedules/search/placements.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("any placement is a chain, and loops and snakes of every number of stages that divides the chunks") {
  std::vector<std::string> names;
  for (const NamedPlacement& placement : placements("any", 3, 4)) {
    names.push_back(placement.name + " of " + std::to_string(placement.stages.size()));
  }
  CHECK(names == std::vector<std::string>{"chain of 3", "loop of 6", "v of 6", "loop of 12", "wave of 12"});
}

TEST_CASE("a name gives its own placements, or none") {
  REQUIRE(placements("v", 4, 2).size() == 1);
  CHECK(placements("v", 4, 2).front().stages == snake_placement(4, 8));
  CHECK(placements("v", 4, 3).empty());
  CHECK(placements("bidirectional", 4, 1).front().stages == bidirectional_placement(4));
}

}  // namespace plumb::test
