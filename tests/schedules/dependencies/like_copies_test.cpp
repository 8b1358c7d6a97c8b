#include "schedules/dependencies/like_copies.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"

namespace plumb::test {

TEST_CASE("bidirectional schedules with an even number of micro-batches share state, and are valid in every lowering") {
  for (const char* name : {"dualpipe", "chimera"})
    for (const int ranks : {2, 4, 6})
      for (int microbatches = 2; microbatches <= 14; microbatches += 2) {
        CAPTURE(name);
        CAPTURE(ranks);
        CAPTURE(microbatches);
        const Schedule order = make_schedule(name, {.ranks = ranks, .microbatches = microbatches});
        CHECK(why_copies_cannot_share(order, true).empty());
        for (const int zero : {1, 2, 3})
          for (const Checkpoint checkpoint : {Checkpoint::kNever, Checkpoint::kAlways, Checkpoint::kExceptLast}) {
            const Schedule lowered = lower(order, {.checkpoint = checkpoint, .data = {.zero = zero}});
            CHECK(validate(lowered).empty());
            CHECK((zero == 1 || why_copies_cannot_share(lowered, zero == 3).empty()));
          }
      }
}

TEST_CASE("lanes of different length cannot share, and the sentence says what can be done") {
  const Schedule order = make_schedule("dualpipe", {.ranks = 4, .microbatches = 5});
  CHECK(why_copies_cannot_share(order, false).find("ranks 0 and 3 hold copies of model part 0") == 0);
  CHECK_THROWS_WITH_AS(lower(order, {.data = {.zero = 2}}),
                       doctest::Contains("give an even number of micro-batches, or take ZeRO 0 or 1"), ScheduleError);
  CHECK_NOTHROW(lower(order, {.data = {.zero = 1}}));
}

TEST_CASE("copies that meet the other part first cannot share, however many micro-batches there are") {
  const std::string why = why_copies_cannot_share(make_schedule("gems", {.ranks = 4, .microbatches = 6}), false);
  CHECK(why.ends_with("order: take ZeRO 0 or 1"));
}

TEST_CASE("without copies any order will do, and recomputation matters where weights are shared") {
  CHECK(why_copies_cannot_share(make_schedule("interleaved", {.ranks = 4, .microbatches = 5, .chunks = 2}), true)
            .empty());
  const Schedule one_recomputes =
      parse_schedule("microbatches: 2\nstages: 0/0/0 1/1/0 1/0/1 0/1/1\n0F0 3F1 3R1 3B1 0B0\n2F1 1F0 1B0 2B1");
  CHECK(why_copies_cannot_share(one_recomputes, false).empty());
  CHECK(!why_copies_cannot_share(one_recomputes, true).empty());
}

}  // namespace plumb::test
