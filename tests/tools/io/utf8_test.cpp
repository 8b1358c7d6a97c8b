#include "tools/io/utf8.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("the first byte that is no UTF-8 is found") {
  CHECK(first_invalid_utf8("") == std::string_view::npos);
  CHECK(first_invalid_utf8("µ-batch, 1 → 2") == std::string_view::npos);
  CHECK(first_invalid_utf8("ab\xff"
                           "c") == 2);
  CHECK(first_invalid_utf8("ab\xc3") == 2);        // cut inside a character
  CHECK(first_invalid_utf8("\xc0\xaf") == 0);      // an overlong '/'
  CHECK(first_invalid_utf8("\xed\xa0\x80") == 0);  // half of a surrogate pair
}

TEST_CASE("what a terminal should not get is replaced") {
  CHECK(printable("µ 1\t2\n") == "µ 1\t2\n");
  CHECK(printable("a\x1b[31mb\x7f") == "a?[31mb?");
  CHECK(printable("a\xff\xc3") == "a??");
}

}  // namespace plumb::test
