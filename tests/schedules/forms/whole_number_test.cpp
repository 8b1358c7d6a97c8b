#include "schedules/forms/whole_number.h"

#include <cstdint>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a text is a number as a whole, within its type, or it is none") {
  CHECK(whole_number<int>("17") == 17);
  CHECK(whole_number<double>("2.5e3") == 2500);
  for (const char* text : {"", "17x", " 17", "1.5", "5000000000"}) CHECK_FALSE(whole_number<int>(text));
  CHECK_FALSE(whole_number<std::uint64_t>("-1"));
}

TEST_CASE("neither infinity nor what is not a number is one") {
  for (const char* text : {"nan", "NAN", "nan(1)", "inf", "-inf", "infinity", "1e999", "-1e999"})
    CHECK_FALSE(whole_number<double>(text));
}

}  // namespace plumb::test
