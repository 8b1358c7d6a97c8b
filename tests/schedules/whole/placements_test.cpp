// Schedules on a V, a snake or two lanes, as text.

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
TEST_CASE("ZB-V goes down and up the V and fills the drain with weight gradients put off") {
  CHECK(make_schedule("zb-v", {.ranks = 2, .microbatches = 4}).ranks ==
        rows("0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3\n"
             "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3"));
}

TEST_CASE("ZB-V and DualPipeV of fewer micro-batches than they fill are the larger order without the others") {
  CHECK(make_schedule("zb-v", {.ranks = 2, .microbatches = 1}).ranks ==
        rows("0F0 3F0 3I0 3W0 0I0 0W0\n1F0 2F0 2I0 2W0 1I0 1W0"));
  CHECK(make_schedule("dualpipev", {.ranks = 2, .microbatches = 1}).ranks ==
        rows("0F0 3F0 3I0 3W0 0B0\n1F0 2F0 2B0 1B0"));
}

TEST_CASE("DualPipe is DualPipeV unfolded: where that goes up the V, another lane goes the other way") {
  // Ranks 0 and 1 of four run the eight steps of DualPipeV's two; ranks 2 and 3 mirror them with the lanes exchanged.
  const Schedule schedule = make_schedule("dualpipe", {.ranks = 4, .microbatches = 8});
  CHECK(schedule.stages == bidirectional_placement(4));
  CHECK(schedule.ranks == rows("0F0 0F1 0F2 7F4 7I4 7W4 7F5 0F3&7B5 7F6&0B0 7B6 7F7&0B1 7B7 0I2 0W2 0I3 0W3\n"
                               "1F0 6F4 1F1 6F5 1F2 6B4 6F6&1B0 1F3&6B5 6F7&1B1 6B6 1B2 6I7 1I3 6W7 1W3\n"
                               "5F4 2F0 5F5 2F1 5F6 2B0 2F2&5B4 5F7&2B1 2F3&5B5 2B2 5B6 2I3 5I7 2W3 5W7\n"
                               "4F4 4F5 4F6 3F0 3I0 3W0 3F1 4F7&3B1 3F2&4B4 3B2 3F3&4B5 3B3 4I6 4W6 4I7 4W7"));
}

TEST_CASE("DualPipe of an odd number, or of few micro-batches, is the larger order without the others") {
  const Schedule whole = make_schedule("dualpipe", {.ranks = 4, .microbatches = 10});
  const Schedule odd = make_schedule("dualpipe", {.ranks = 4, .microbatches = 9});
  // Lane 1 had micro-batches 5 to 9, of which 9 is left out.
  for (std::size_t r = 0; r < 4; ++r) {
    std::vector<Action> expected;
    for (const Action& action : whole.ranks[r]) {
      if (action.microbatch == 9) continue;
      expected.push_back(action);
    }
    REQUIRE(odd.ranks[r].size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(odd.ranks[r][i].op == expected[i].op);
      CHECK(odd.ranks[r][i].stage == expected[i].stage);
      CHECK(odd.ranks[r][i].microbatch == expected[i].microbatch);
    }
  }
  for (int p = 2; p <= 8; p += 2) {
    for (int m = 2; m <= 2 * p + 1; ++m) {
      CAPTURE(p);
      CAPTURE(m);
      for (const char* name : {"dualpipe", "chimera"}) {
        const Schedule schedule = make_schedule(name, {.ranks = p, .microbatches = m});
        CHECK(validate(schedule).empty());
        CHECK(validate(lower(schedule)).empty());
      }
    }
  }
}

TEST_CASE("DualPipe names the constraint that p and m break") {
  for (const auto& [p, m] : {std::pair{3, 6}, {4, 1}, {1, 2}}) {
    CHECK_THROWS_AS(make_schedule("dualpipe", {.ranks = p, .microbatches = m}), ScheduleError);
  }
  CHECK_THROWS_WITH(
      make_schedule("dualpipe", {.ranks = 13, .microbatches = 29}),
      "dualpipe demands p even, m >= 2, not 13 ranks and 29 micro-batches: change them, or use dualpipev, "
      "which takes any");
}

TEST_CASE("Chimera runs a 1F1B in each direction, one in the gaps of the other") {
  CHECK(make_schedule("chimera", {.ranks = 2, .microbatches = 4}).ranks ==
        rows("0F0 3F2 3B2 0B0 0F1 3F3 3B3 0B1\n2F2 1F0 1B0 2B2 2F3 1F1 1B1 2B3"));
  CHECK_THROWS_WITH(make_schedule("chimera", {.ranks = 13, .microbatches = 29}),
                    "chimera demands p even, m >= 2, not 13 ranks and 29 micro-batches: change them, or use 1f1b");
}

TEST_CASE("BPipe's first ranks lend their newest activations out and take them back a backward ahead") {
  // Four ranks keep two each, and a third while a forward runs; rank 0's fourth does not fit.
  CHECK(make_schedule("bpipe", {.ranks = 4, .microbatches = 4}).ranks[0] ==
        rows("0F0 0F1 0F2 0EVICT2 0F3 0EVICT3 0B0 0LOAD2 0B1 0LOAD3 0B2 0B3")[0]);
  CHECK(make_schedule("bpipe", {.ranks = 4, .microbatches = 4}).ranks[1] ==
        make_schedule("1f1b", {.ranks = 4, .microbatches = 4}).ranks[1]);
}

TEST_CASE("Hanayo's wave goes down the ranks and comes back up, forth and back again in the backward") {
  CHECK(make_schedule("hanayo", {.ranks = 2, .microbatches = 2, .chunks = 2}).ranks ==
        rows("0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1\n1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1"));
}

TEST_CASE("a schedule on a V takes its two chunks as given, and no others") {
  CHECK(make_schedule("zb-v", {.ranks = 2, .microbatches = 3, .chunks = 2}) ==
        make_schedule("zb-v", {.ranks = 2, .microbatches = 3}));
  CHECK_THROWS_WITH(make_schedule("zb-v", {.ranks = 2, .microbatches = 3, .chunks = 3}),
                    "zb-v runs two chunks a rank, not 3: leave the chunks out, or use interleaved");
}

}  // namespace plumb::test
