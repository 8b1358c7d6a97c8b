#include "schedules/forms/json_form.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"

namespace plumb::test {

TEST_CASE("every schedule, lowered or not, reads back as it was written") {
  for (const CatalogueEntry& entry : catalogue()) {
    const Schedule schedule = make_schedule(entry.name, {.ranks = 2, .microbatches = 4, .chunks = entry.chunks});
    for (const Schedule& s : {schedule, lower(schedule)}) {
      CAPTURE(entry.name);
      CHECK(parse_schedule_json(schedule_to_json(s).dump(), "a.json") == s);
    }
  }
}

TEST_CASE("what is not in the form is refused with its place") {
  const auto reading = [](const char* text) { return [text] { return parse_schedule_json(text, "a.json"); }; };
  CHECK_THROWS_WITH_AS(
      reading(R"({"microbatches": 1, "stages": [{"rank": 0, "model_part": 0}], "ranks": ["0F0 0G0"]})")(),
      "a.json: ranks[0], column 5: \"0G0\" is not an action: write <stage><OP><micro-batch>, as in 0F3 or 1SEND_F0",
      ScheduleError);
  CHECK_THROWS_AS(reading(R"({"microbatches": 0, "stages": [], "ranks": []})")(), SpecError);
  CHECK_THROWS_AS(reading(R"({"microbatches": 1, "stages": [{"rank": 0}], "ranks": []})")(), SpecError);
  CHECK_THROWS_AS(reading(R"({"microbatches": 1, "stages": [], "ranks": [1]})")(), SpecError);
  CHECK_THROWS_AS(reading(R"({"microbatches": 1, "stages": [], "ranks": [], "color": "red"})")(), SpecError);
  CHECK_THROWS_AS(reading(R"({"microbatches": 1, "weights": "heavy", "stages": [], "ranks": []})")(), SpecError);
  CHECK_THROWS_AS(reading("{")(), SpecError);
}

TEST_CASE("a list of rows is a schedule too, each a string or a list of actions") {
  const Schedule plain = parse_schedule("0F0 0B0\n1F0 1B0");
  CHECK(parse_schedule_json(R"([["0F0", "0B0"], "1F0 1B0"])", "a.json") == plain);
  CHECK_THROWS_WITH_AS(parse_schedule_json(R"([["0F0", 3]])", "a.json"),
                       "a.json: row 0 holds something that is no string: write actions, as in \"0F0\"", ScheduleError);
  CHECK_THROWS_AS(parse_schedule_json("[3]", "a.json"), ScheduleError);
}

}  // namespace plumb::test
