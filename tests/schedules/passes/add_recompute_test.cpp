#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "schedules/passes/passes.h"
#include "schedules/rules/validate.h"

namespace plumb::test {

TEST_CASE("R stands right before the backward it serves, so that it may start before the gradient arrives") {
  const Schedule schedule = make_schedule("gpipe", {.ranks = 2, .microbatches = 2});
  CHECK(add_recompute(schedule, Checkpoint::kAlways).ranks ==
        parse_schedule("0F0 0F1 0R0 0B0 0R1 0B1\n1F0 1F1 1R0 1B0 1R1 1B1").ranks);
  CHECK(add_recompute(schedule, Checkpoint::kExceptLast).ranks ==
        parse_schedule("0F0 0F1 0R0 0B0 0B1\n1F0 1F1 1R0 1B0 1B1").ranks);
  CHECK(add_recompute(schedule, Checkpoint::kNever) == schedule);
}

TEST_CASE("the last micro-batch is each lane's own") {
  const Schedule schedule = parse_schedule(
      "microbatches: 4\nstages: 0/0/0 1/1/0 1/0/1 0/1/1\n0F0 0F1 3F2 3B2 3F3 3B3 0B0 0B1\n2F2 2F3 1F0 1B0 1F1 1B1 2B2 "
      "2B3");
  CHECK(add_recompute(schedule, Checkpoint::kExceptLast).ranks ==
        parse_schedule("microbatches: 4\nstages: 0/0/0 1/1/0 1/0/1 0/1/1\n0F0 0F1 3F2 3R2 3B2 3F3 3B3 0R0 0B0 0B1\n2F2 "
                       "2F3 1F0 1R0 1B0 1F1 1B1 2R2 2B2 2B3")
            .ranks);
}

TEST_CASE("R stands before an overlapped pair, and W needs none") {
  const Schedule schedule = parse_schedule("0F0 0F1&0I0 0W0 0I1 0W1");
  CHECK(add_recompute(schedule, Checkpoint::kAlways).ranks == parse_schedule("0F0 0R0 0F1&0I0 0W0 0R1 0I1 0W1").ranks);
}

TEST_CASE("every schedule with recomputation is valid, and forward-only has none") {
  for (const CatalogueEntry& entry : catalogue()) {
    for (const Checkpoint checkpoint : {Checkpoint::kAlways, Checkpoint::kExceptLast}) {
      for (int p = 1; p <= 4; ++p) {
        for (int m = 1; m <= 3 * p; ++m) {
          CAPTURE(entry.name);
          CAPTURE(p);
          CAPTURE(m);
          Schedule schedule;
          try {
            schedule = make_schedule(entry.name, {.ranks = p, .microbatches = m});
          } catch (const ScheduleError&) {  // a constraint of that schedule on p and m
            continue;
          }
          CHECK(validate(lower(schedule, {.checkpoint = checkpoint})).empty());
        }
      }
    }
  }
  const Schedule inference = make_schedule("forward-only", {.ranks = 2, .microbatches = 2});
  CHECK(add_recompute(inference, Checkpoint::kAlways) == inference);
}

}  // namespace plumb::test
