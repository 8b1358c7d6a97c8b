#include "tools/reports/table.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("columns of numbers stand to the right, others to the left") {
  CHECK(to_text({.head = {"name", "time"}, .rows = {{"a", "10 s"}, {"long name", "9.5 s"}}}) ==
        "name        time\n"
        "---------  -----\n"
        "a           10 s\n"
        "long name  9.5 s\n");
}

TEST_CASE("CSV quotes what would be misread") {
  CHECK(to_csv({.head = {"a", "b"}, .rows = {{"1,5", "say \"x\""}}}) == "a,b\n\"1,5\",\"say \"\"x\"\"\"\n");
}

TEST_CASE("durations and sizes keep three digits and a unit that suits") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(1.2345) == "1.23 s");
  CHECK(duration_text(0.0123456) == "12.3 ms");
  CHECK(duration_text(0.00099999) == "1.00 ms");
  CHECK(duration_text(2e-12) == "2.00 ps");
  CHECK(duration_text(1234) == "1234 s");
  CHECK(parameters_text(8'030'261'248) == "8.03 B");
  CHECK(parameters_text(124'439'808) == "124 M");
  CHECK(bytes_text(17) == "17 B");
  CHECK(bytes_text(1023.9) == "1.00 KiB");
  CHECK(bytes_text(4.0 * 1024 * 1024) == "4.00 MiB");
  CHECK(bytes_text(80.0 * 1024 * 1024 * 1024) == "80.0 GiB");
}

}  // namespace plumb::test
