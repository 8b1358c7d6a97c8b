#include "schedules/nearest_name.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("the nearest name is the one with the fewest edits, case aside, the first of equals") {
  CHECK(nearest_name("hiden", {"heads", "hidden", "layers"}) == "hidden");
  CHECK(nearest_name("GPIPE", {"1f1b", "gpipe"}) == "gpipe");
  CHECK(nearest_name("zz", {"ab", "cd"}) == "ab");
  CHECK(nearest_name("x", {}).empty());
}

}  // namespace plumb::test
