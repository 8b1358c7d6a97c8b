#include "tools/io/wrapped.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("text is broken at its blanks, and further lines are indented") {
  CHECK(wrapped("one two three", 9, 0) == "one two\nthree");
  CHECK(wrapped("one two three", 9, 2) == "one two\n  three");
  CHECK(wrapped("a  b ", 80, 0) == "a b");
  CHECK(wrapped("", 80, 4).empty());
}

TEST_CASE("a line ends before a number rather than between it and its unit") {
  CHECK(wrapped("a step takes 11.6 s, bubble 7.7 % of it", 16, 0) == "a step takes\n11.6 s, bubble\n7.7 % of it");
}

TEST_CASE("lines that are too long are wrapped where they begin, and the others stay") {
  CHECK(folded("a  table\n  one two three\n\n", 9) == "a  table\n  one two\n  three\n\n");
  CHECK(folded("░░░░ ░░░░", 9) == "░░░░ ░░░░");  // nine characters
}

TEST_CASE("a word that is longer than a line stands by itself") {
  CHECK(wrapped("a abcdefgh b", 4, 1) == "a\n abcdefgh\n b");
}

}  // namespace plumb::test
