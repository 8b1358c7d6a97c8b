#include "planner/logs/trace_events.h"

#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace plumb::test {
namespace {

std::vector<int> numbers_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<int> numbers;
  for_each_event(stream, [&](const nlohmann::json& event) { numbers.push_back(event.at("n")); });
  return numbers;
}

}  // namespace

TEST_CASE("the events of a list, and those under traceEvents, come one after the other") {
  CHECK(numbers_of(R"([{"n": 1}, {"n": 2, "args": {"n": 7}}])") == std::vector{1, 2});
  CHECK(numbers_of(R"({"other": [{"n": 9}], "traceEvents": [{"n": 1}, {"n": 2}], "more": {"n": 8}})") ==
        std::vector{1, 2});
}

TEST_CASE("what is no event is passed over, wherever it stands") {
  CHECK(numbers_of(R"([1, "text", [2, {"n": 5}, 3], {"n": 4}, null])") == std::vector{4});
  CHECK(
      numbers_of(R"({"a": 1, "b": {"n": 1, "c": [{"n": 2}]}, "traceEvents": [7, [{"n": 3}], {"n": 4, "args": [1, {}]}],
                       "d": "text", "e": [[1], {"n": 6}]})") == std::vector{4});
  std::istringstream number("17");
  CHECK_FALSE(for_each_event(number, [](const nlohmann::json&) { FAIL("a number is no event"); }));
}

TEST_CASE("a trace that is cut short throws after the events that it has") {
  std::istringstream stream(R"([{"n": 1}, {"n": )");
  int count = 0;
  CHECK_THROWS_AS(for_each_event(stream, [&](const nlohmann::json&) { ++count; }), nlohmann::json::exception);
  CHECK(count == 1);
}

}  // namespace plumb::test
