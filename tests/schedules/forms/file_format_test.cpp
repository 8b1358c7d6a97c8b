#include "schedules/forms/file_format.h"

#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/json_form.h"
#include "schedules/forms/text_form.h"

namespace plumb::test {
namespace {

using nlohmann::json;

std::vector<FileForm> all_kinds() {
  std::vector<FileForm> kinds;
  for (int kind = 0; kind < kFileFormCount; ++kind) kinds.push_back(static_cast<FileForm>(kind));
  return kinds;
}

}  // namespace

TEST_CASE("a file of each kind has its number first, and is read without it") {
  for (const FileForm kind : all_kinds()) {
    const nlohmann::ordered_json document{{"name", "a"}, {"devices", 2}};
    const nlohmann::ordered_json numbered = with_format(kind, document);
    CHECK(numbered.begin().key() == "plumb_format");
    CHECK(numbered["plumb_format"] == newest_format(kind));
    CHECK(parse_file(kind, numbered.dump(), "a.json") == json(document));
  }
}

TEST_CASE("a file without a number is of the first format, as is one that is no object") {
  for (const FileForm kind : all_kinds()) {
    CHECK(parse_file(kind, R"({"name": "a"})", "a.json") == json{{"name", "a"}});
    CHECK(parse_file(kind, R"(["0F0 0B0"])", "a.json") == json{"0F0 0B0"});
    CHECK(parse_file(kind, R"({"plumb_format": 1})", "a.json") == json::object());
  }
}

TEST_CASE("a newer format is refused in a sentence with file, number, the newest that is read, and remedy") {
  for (const FileForm kind : all_kinds()) {
    const int newest = newest_format(kind);
    json document{{"unheard-of", 1}};
    document["plumb_format"] = newest + 1;
    CHECK_THROWS_WITH_AS(parse_file(kind, document.dump(), "a.json"), doctest::Contains("update Plumb, or "),
                         SpecError);
    CHECK_THROWS_AS(checked_format(kind, "99999999999999999999", "a"), SpecError);  // more than an int holds
  }
  CHECK_THROWS_WITH(parse_file(FileForm::kPlan, R"({"plumb_format": 3})", "plan.json"),
                    "plan.json: format 3 of a plan is newer than this Plumb, which reads up to 1: update Plumb, or "
                    "write the file again with `plumb plan ... -o`");
}

TEST_CASE("what numbers no format is refused") {
  for (const FileForm kind : all_kinds()) {
    for (const char* nonsense : {"0", "-1", "1.5", "1.0", "1e0", "true", "null", "\"1\"", "[1]", "{}"}) {
      CAPTURE(nonsense);
      const std::string text = std::string("{\"plumb_format\": ") + nonsense + "}";
      CHECK_THROWS_WITH_AS(parse_file(kind, text, "a.json"), doctest::Contains("is no whole number of 1 or more: "),
                           SpecError);
    }
    for (const char* nonsense : {"", "01", "+1", " 1", "1 ", "one"})
      CHECK_THROWS_AS(checked_format(kind, nonsense, "a"), SpecError);
  }
  CHECK_THROWS_WITH(parse_file(FileForm::kSchedule, R"({"plumb_format": "new"})", "a.json"),
                    "a.json: format \"new\" is no whole number of 1 or more: write the file again with "
                    "`plumb schedule make ... -o`");
}

TEST_CASE("a schedule file is read with its number and without, and not inside another document") {
  const Schedule schedule = parse_schedule("0F0 0B0\n1F0 1B0");
  const nlohmann::ordered_json document = schedule_to_json(schedule);
  const nlohmann::ordered_json numbered = with_format(FileForm::kSchedule, document);
  CHECK(parse_schedule_json(document.dump(), "a.json") == schedule);
  CHECK(parse_schedule_json(numbered.dump(), "a.json") == schedule);
  CHECK_THROWS_WITH_AS(schedule_from_json(numbered, "plan.json: schedule"), doctest::Contains("plumb_format"),
                       SpecError);
}

}  // namespace plumb::test
