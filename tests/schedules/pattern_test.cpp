#include "schedules/pattern.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {

TEST_CASE("a pattern is searched anywhere in a text, in any case of its letters") {
  CHECK(Pattern("^conv|mlp$").found_in("Convolution-3"));
  CHECK(Pattern("^conv|mlp$").found_in("the MLP"));
  CHECK_FALSE(Pattern("^conv|mlp$").found_in("a convolution"));
  CHECK(Pattern("").found_in(""));
}

TEST_CASE("brackets keep what they have matched, and none where there is no match") {
  const std::string text = "DGX, 8 x 200 Gb/s";
  CHECK(Pattern(R"((\d+) x (\d+)(mm)?)").groups_in(text) == std::vector<std::string>{"8 x 200", "8", "200", ""});
  CHECK(Pattern("(\\d+)TB").groups_in(text).empty());
  CHECK(Pattern("[ ,]").removed_from(text) == "DGX8x200Gb/s");
}

TEST_CASE("an expression that would explode takes time in proportion to the text") {
  const std::string text(100'000, 'a');
  CHECK_FALSE(Pattern("(.*.*.*.*.*.*.*.*)*z").found_in(text));
  CHECK_FALSE(Pattern("(a|aa)+$z").found_in(text));
}

TEST_CASE("what is no expression, too long or too large is refused with the remedy") {
  const auto refused = [](const std::string& expression, const char* part) {
    CHECK_THROWS_WITH_AS(Pattern{expression}, doctest::Contains(part), SpecError);
  };
  refused("(", "\"(\" is no regular expression");
  CHECK_THROWS_WITH_AS(Pattern("(", "--method type:("), doctest::Contains("--method type:(: \"(\" is no"), SpecError);
  refused("^(?!release)", "no look-ahead");
  refused("((a{999}){999}){999}", "repeat less");
  refused(std::string(1001, 'a'), "1001 letters is too long: give at most 1000");
}

}  // namespace plumb::test
