#include "traces/draw/timeline_title.h"

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"

namespace plumb::test {

TEST_CASE("a title names ranks, chunks and micro-batches, and stages of one model part as copies, not as chunks") {
  const ScheduleParameters four{.ranks = 4, .microbatches = 8};
  CHECK(timeline_title(make_schedule("1f1b", four)) == "1f1b p=4 m=8");
  CHECK(timeline_title(make_schedule("zb-v", four)) == "zb-v p=4 v=2 m=8");
  CHECK(timeline_title(make_schedule("chimera", four)) == "chimera p=4 m=8, 2 copies");
  CHECK(timeline_title(make_schedule("dualpipe", four)) == "dualpipe p=4 m=8, 2 copies");
  CHECK(timeline_title({.name = "empty"}) == "empty p=0 m=0");
}

}  // namespace plumb::test
