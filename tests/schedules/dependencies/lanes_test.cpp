#include "schedules/dependencies/lanes.h"

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"

namespace plumb::test {

TEST_CASE("each stage knows where its pipeline begins") {
  const auto first_of = [](std::string_view name) {
    return first_stages(make_schedule(name, {.ranks = 2, .microbatches = 4}));
  };
  CHECK(first_of("zb-v") == std::vector<int>{0, 0, 0, 0});
  CHECK(first_of("chimera") == std::vector<int>{0, 0, 2, 2});
}

}  // namespace plumb::test
