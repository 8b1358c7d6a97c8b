#include "schedules/forms/text_form.h"

#include <doctest/doctest.h>

#include "schedules/dependencies/weight_messages.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"

namespace plumb::test {

TEST_CASE("rows imply the stages' ranks and the number of micro-batches") {
  const Schedule schedule = parse_schedule("0F0 0F1 2F0 2F1\n1F0 1F1 3F0 3F1\n");
  CHECK(schedule.microbatches == 2);
  CHECK(schedule.stages == loop_placement(2, 4));
  CHECK(schedule.weights == WeightPolicy::kCurrent);
}

TEST_CASE("the text of every schedule reads back as the same schedule") {
  for (const CatalogueEntry& entry : catalogue()) {
    for (int m = 4; m <= 8; m += 2) {  // numbers that every constraint allows
      const Schedule schedule =
          make_schedule(entry.name, {.ranks = 2, .microbatches = m, .chunks = entry.takes_chunks ? 2 : 1});
      CHECK(parse_schedule(to_text(schedule)) == schedule);
      if (weights_travel(schedule)) continue;
      const bool is_whole = stages_with_copies(schedule).front() || entry.name == "helixpipe";  // no ZeRO 3 for these
      const Schedule lowered = lower(schedule, {.data = {.enabled = true, .zero = is_whole ? 1 : 3}});
      CHECK(parse_schedule(to_text(lowered)) == lowered);
    }
  }
}

TEST_CASE("what rows do not imply is written ahead of them") {
  Schedule odd = parse_schedule("0F0&0B1 1F0/3\n-");
  odd.microbatches = 7;
  odd.name = "odd one";
  odd.weights = WeightPolicy::kTwoBuffered;
  odd.stages = {{.rank = 0, .model_part = 0, .lane = 0}, {.rank = 0, .model_part = 0, .lane = 1}};
  CHECK(to_text(odd) ==
        "name: odd one\nweights: two_buffered\nmicrobatches: 7\nstages: 0/0/0 0/0/1\n0F0&0B1 1F0/3\n-\n");
  CHECK(parse_schedule(to_text(odd)) == odd);
}

TEST_CASE("comments and blank lines are skipped") {
  CHECK(parse_schedule("# one\n\n0F0\n  # two\n") == parse_schedule("0F0"));
}

TEST_CASE("rows may have their rank in front, in order") {
  CHECK(parse_schedule("rank 0: 0F0 0B0\nRank 1:  1F0\t1B0\n") == parse_schedule("0F0 0B0\n1F0 1B0"));
  CHECK_THROWS_WITH_AS(parse_schedule("rank 1: 1F0 1B0\nrank 0: 0F0 0B0\n", "a.txt"),
                       "a.txt: line 1, column 1: rank \"1\" stands where rank 0 is: list the ranks in order, from 0",
                       ScheduleError);
  CHECK_THROWS_WITH_AS(parse_schedule("rank 0: F0", "a.txt"),
                       "a.txt: line 1, column 9: \"F0\" has no stage: write it in front, as in 0F0", ScheduleError);
}

TEST_CASE("a fault names file, line and column") {
  CHECK_THROWS_WITH_AS(
      parse_schedule("0F0\n1F0 1G0", "mine.txt"),
      "mine.txt: line 2, column 5: \"1G0\" is not an action: write <stage><OP><micro-batch>, as in 0F3 or 1SEND_F0",
      ScheduleError);
  CHECK_THROWS_AS(parse_schedule("0F0&"), ScheduleError);
  CHECK_THROWS_AS(parse_schedule("0F0&0B0&0F1"), ScheduleError);
  CHECK_THROWS_AS(parse_schedule("weights: heavy\n0F0"), ScheduleError);
  CHECK_THROWS_AS(parse_schedule("stages: 0/0\n0F0"), ScheduleError);
  CHECK_THROWS_AS(parse_schedule("colour: red\n0F0"), ScheduleError);
  CHECK_THROWS_AS(parse_schedule("microbatches: 0\n0F0"), ScheduleError);
  CHECK_THROWS_AS(parse_schedule("2000000000F0"), ScheduleError);
}

}  // namespace plumb::test
