#include "tools/io/wrapped.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("text is broken at its blanks, and further lines are indented") {
  CHECK(wrapped("one two three", 9, 0) == "one two\nthree");
  CHECK(wrapped("one two three", 9, 2) == "one two\n  three");
  CHECK(wrapped("a  b ", 80, 0) == "a b");
  CHECK(wrapped("", 80, 4).empty());
}

TEST_CASE("a word that is longer than a line stands by itself") {
  CHECK(wrapped("a abcdefgh b", 4, 1) == "a\n abcdefgh\n b");
}

}  // namespace plumb::test
