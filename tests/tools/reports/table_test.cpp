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

TEST_CASE("columns that do not fit the terminal follow in blocks with the first column") {
  const TextTable table{.head = {"rank", "first", "second", "third"}, .rows = {{"0", "1 s", "2 s", "3 s"}}};
  fold_tables_at(19);
  const std::string folded = to_text(table);
  fold_tables_at(3);
  const std::string narrow = to_text(table);
  fold_tables_at(1000);
  CHECK(folded ==
        "rank  first  second\n"
        "----  -----  ------\n"
        "   0    1 s     2 s\n"
        "\n"
        "rank  third\n"
        "----  -----\n"
        "   0    3 s\n");
  CHECK(narrow.find("rank  second\n") != std::string::npos);  // a column stands even where it is too wide
}

TEST_CASE("a cell of more than half of the terminal is broken behind a comma") {
  fold_tables_at(60);
  const std::string text =
      to_text({.head = {"layout", "step"}, .rows = {{"dp=8,tp=1,pp=1,cp=2,v=1,zero=1,sp=0,mbs=1", "6 s"}}});
  fold_tables_at(1000);
  CHECK(text ==
        "layout                    step\n"
        "------------------------  ----\n"
        "dp=8,tp=1,pp=1,cp=2,v=1,   6 s\n"
        "zero=1,sp=0,mbs=1\n");
}

TEST_CASE("what is left of a broken row is left out of the columns that it has no cell in") {
  fold_tables_at(22);
  const std::string text =
      to_text({.head = {"a", "words", "b"}, .rows = {{"1", "one two three, four five six", "x"}, {"2", "seven", "y"}}});
  fold_tables_at(1000);
  CHECK(text ==
        "a  words\n"
        "-  -------------------\n"
        "1  one two three, four\n"
        "   five six\n"
        "2  seven\n"
        "\n"
        "a  b\n"
        "-  -\n"
        "1  x\n"
        "2  y\n");
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
