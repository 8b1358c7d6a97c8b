#include "tests/ptx/warp_schedule.h"

#include <doctest/doctest.h>

#include <vector>

namespace plumb::test::ptx {

TEST_CASE("a warp alone takes as long as its instructions or its waits") {
  const std::vector<BlockPhases> block = {{{{.slots = 10, .clocks = 3}, {.slots = 1, .clocks = 20}}}};
  CHECK(schedule_clocks(block, {}) == 30);
  CHECK(schedule_clocks({}, {}) == 0);
}

TEST_CASE("warps of a scheduler take turns, and fill each other's waits") {
  const WarpPhases waits = {{.slots = 1, .clocks = 20}}, works = {{.slots = 10, .clocks = 10}};
  CHECK(schedule_clocks(std::vector<BlockPhases>{{works, works, works, works}}, {}) == 10);         // a scheduler each
  CHECK(schedule_clocks(std::vector<BlockPhases>{{works, works, works, works, works}}, {}) == 20);  // two share one
  CHECK(schedule_clocks(std::vector<BlockPhases>{{waits, waits, waits, waits, works}}, {}) == 20);
}

TEST_CASE("a barrier holds warps until all that have not ended are there") {
  const WarpPhases fast = {{.slots = 1, .clocks = 1, .ends_at_barrier = true}, {.slots = 5}};
  const WarpPhases slow = {{.slots = 1, .clocks = 50, .ends_at_barrier = true}, {.slots = 5}};
  const WarpPhases none = {{.slots = 1, .clocks = 70}};
  CHECK(schedule_clocks(std::vector<BlockPhases>{{fast, slow}}, {}) == 55);
  CHECK(schedule_clocks(std::vector<BlockPhases>{{fast, slow, none}}, {}) == 75);
}

TEST_CASE("a multiprocessor gets its share of the blocks, and begins one where another has ended") {
  const std::vector<BlockPhases> blocks = {{{{.slots = 1, .clocks = 10}}}, {{{.slots = 1, .clocks = 30}}}};
  CHECK(schedule_clocks(blocks, {}) == 40);
  CHECK(schedule_clocks(blocks, {.resident = 2}) == 30);
  CHECK(schedule_clocks(blocks, {.multiprocessors = 2}) == 10);               // it gets the first block
  CHECK(schedule_clocks(blocks, {.multiprocessors = 2, .copies = 2}) == 40);  // and one copy of each
}

}  // namespace plumb::test::ptx
