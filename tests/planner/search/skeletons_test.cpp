#include "planner/search/skeletons.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a skeleton shows the stages and operations of an order, and is made once") {
  Skeletons skeletons;
  const Layout layout{.pipeline = 4, .chunks = 2, .schedule = "interleaved"};
  const Skeleton* skeleton = skeletons.find(layout);
  REQUIRE(skeleton != nullptr);
  CHECK(skeleton->schedule.stages.size() == 8);
  CHECK(skeleton->order.parts == 8);
  CHECK(skeleton->bound.backwards);
  CHECK(skeletons.find(layout) == skeleton);
  CHECK(skeletons.find({.pipeline = 4, .schedule = "dualpipe"})->order.copies);
}

TEST_CASE("a schedule that has no order of so many ranks says why") {
  Skeletons skeletons;
  const Layout odd{.pipeline = 3, .schedule = "dualpipe"};
  CHECK(skeletons.find(odd) == nullptr);
  CHECK(!skeletons.why_none(odd).empty());
}

}  // namespace plumb::test
