#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/lower.h"
#include "schedules/validate.h"

using namespace plumb;

namespace {
std::vector<std::vector<Action>> rows(std::string_view text) { return parse_schedule(text).ranks; }

/// Valid before and after lowering, or refused with the constraint that the catalogue states.
void check_valid(const CatalogueEntry& entry, const ScheduleParameters& parameters) {
  try {
    const Schedule schedule = make_schedule(entry.name, parameters);
    CHECK(validate(schedule).empty());
    CHECK(validate(lower(schedule)).empty());
  } catch (const ScheduleError& error) {
    CHECK_FALSE(entry.constraint.starts_with("any m"));
    CHECK(std::string_view(error.what()).find(entry.constraint) != std::string_view::npos);
  }
}

}  // namespace

TEST_CASE("naive runs one micro-batch through and back before the next") {
  CHECK(make_schedule("naive", {.ranks = 2, .microbatches = 2}).ranks == rows("0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1"));
}

TEST_CASE("GPipe runs all forwards, then all backwards in ascending order") {
  CHECK(make_schedule("GPipe", {.ranks = 2, .microbatches = 3}).ranks ==
        rows("0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1F1 1F2 1B0 1B1 1B2"));
}

TEST_CASE("1F1B runs p-1-r forwards ahead on rank r, fewer where there are fewer micro-batches") {
  CHECK(make_schedule("1f1b", {.ranks = 3, .microbatches = 4}).ranks ==
        rows("0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
             "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
             "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3"));
  CHECK(make_schedule("1f1b", {.ranks = 3, .microbatches = 1}).ranks == rows("0F0 0B0\n1F0 1B0\n2F0 2B0"));
}

TEST_CASE("PipeDream steps its weights behind every backward and keeps the versions in flight") {
  const Schedule schedule = make_schedule("pipedream", {.ranks = 2, .microbatches = 2});
  CHECK(schedule.weights == WeightPolicy::kStashed);
  CHECK(schedule.ranks == rows("0F0 0F1 0B0 0OPTIMIZER_STEP 0B1 0OPTIMIZER_STEP\n"
                               "1F0 1B0 1OPTIMIZER_STEP 1F1 1B1 1OPTIMIZER_STEP"));
}

TEST_CASE("interleaved runs the chunks of a rank in turn, a group of micro-batches each") {
  // Megatron-LM's order for p=2, v=2, m=4: rank 1 runs one group (2) ahead, rank 0 two more.
  CHECK(make_schedule("interleaved", {.ranks = 2, .microbatches = 4, .chunks = 2}).ranks ==
        rows("0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3\n"
             "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3"));
}

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
  CHECK(schedule.ranks ==
        rows("0F0 0F1 0F2 7F4 7I4 7W4 7F5 0F3&7B5 7F6&0B0 7B6 7F7&0B1 7B7 0I2 0W2 0I3 0W3\n"
             "1F0 6F4 1F1 6F5 1F2 6B4 6F6&1B0 1F3&6B5 6F7&1B1 6B6 1B2 6I7 1I3 6W7 1W3\n"
             "5F4 2F0 5F5 2F1 5F6 2B0 2F2&5B4 5F7&2B1 2F3&5B5 2B2 5B6 2I3 5I7 2W3 5W7\n"
             "4F4 4F5 4F6 3F0 3I0 3W0 3F1 4F7&3B1 3F2&4B4 3B2 3F3&4B5 3B3 4I6 4W6 4I7 4W7"));
}

TEST_CASE("DualPipe names the constraint that p and m break") {
  for (const auto& [p, m] : {std::pair{3, 6}, {4, 9}, {4, 6}, {1, 2}}) {
    CHECK_THROWS_AS(make_schedule("dualpipe", {.ranks = p, .microbatches = m}), ScheduleError);
  }
  CHECK_THROWS_WITH(make_schedule("dualpipe", {.ranks = 13, .microbatches = 29}),
                    "dualpipe demands p even, m even, m >= 2p, not 13 ranks and 29 micro-batches: change them, or use "
                    "dualpipev, which takes any");
}

TEST_CASE("Chimera runs a 1F1B in each direction, one in the gaps of the other") {
  CHECK(make_schedule("chimera", {.ranks = 2, .microbatches = 4}).ranks ==
        rows("0F0 3F2 3B2 0B0 0F1 3F3 3B3 0B1\n2F2 1F0 1B0 2B2 2F3 1F1 1B1 2B3"));
  CHECK_THROWS_WITH(make_schedule("chimera", {.ranks = 13, .microbatches = 29}),
                    "chimera demands p even, m even, not 13 ranks and 29 micro-batches: change them, or use 1f1b");
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

TEST_CASE("every schedule is valid before and after lowering, for any p, v and m") {
  for (const CatalogueEntry& entry : catalogue()) {
    for (int p = 1; p <= 9; ++p) {
      for (int v = 1; v <= (entry.takes_chunks ? 4 : 1); ++v) {
        for (int m = 1; m <= 3 * p; ++m) {
          CAPTURE(entry.name);
          CAPTURE(p);
          CAPTURE(v);
          CAPTURE(m);
          check_valid(entry, {.ranks = p, .microbatches = m, .chunks = v});
        }
      }
    }
  }
}

TEST_CASE("interleaved with m not a multiple of p is valid where Megatron's cut tail deadlocks") {
  CHECK(validate(lower(make_schedule("interleaved", {.ranks = 4, .microbatches = 5, .chunks = 3}))).empty());
  CHECK(validate(lower(make_schedule("interleaved", {.ranks = 13, .microbatches = 29, .chunks = 3}))).empty());
}

TEST_CASE("a group smaller than the ranks is refused where it would deadlock") {
  CHECK_THROWS_AS(make_schedule("interleaved", {.ranks = 4, .microbatches = 8, .chunks = 2, .group = 2}), ScheduleError);
  CHECK(validate(make_schedule("interleaved", {.ranks = 4, .microbatches = 2, .chunks = 2, .group = 2})).empty());
  CHECK(validate(make_schedule("interleaved", {.ranks = 4, .microbatches = 12, .chunks = 2, .group = 6})).empty());
}

TEST_CASE("names and numbers that cannot be are refused with the remedy") {
  CHECK_THROWS_WITH(make_schedule("gpip", {}),
                    "there is no schedule \"gpip\": did you mean \"gpipe\"? `plumb schedule list` names them all");
  CHECK_THROWS_AS(make_schedule("1f1b", {.ranks = 0}), ScheduleError);
  CHECK_THROWS_AS(make_schedule("1f1b", {.microbatches = -1}), ScheduleError);
  CHECK_THROWS_AS(make_schedule("1f1b", {.chunks = 2}), ScheduleError);
}
