#include "tools/io/line_file.h"

#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/tools/test_folder.h"

namespace plumb::test {
namespace {

std::vector<std::string> lines_of_file(const std::string& contents) {
  const TestFolder folder;
  const std::string path = folder.file("lines.log");
  std::ofstream(path, std::ios::binary) << contents;
  std::vector<std::string> lines;
  read_lines(path, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

}  // namespace

TEST_CASE("a file's lines come in order, the last one also without its end") {
  CHECK(lines_of_file("\xEF\xBB\xBF"
                      "a\r\n\nb\nc") == std::vector<std::string>{"a", "", "b", "c"});
  CHECK(lines_of_file("").empty());
  CHECK(lines_of_file("a\n") == std::vector<std::string>{"a"});
}

TEST_CASE("lines across blocks are whole, and one without an end is cut at a mebibyte") {
  const std::string wide(300'000, 'x');
  CHECK(lines_of_file(wide + "\n" + wide + "y\n") == std::vector<std::string>{wide, wide + "y"});
  const std::vector<std::string> cut = lines_of_file(std::string(3 << 20, 'z') + "\nend\n");
  REQUIRE(cut.size() == 2);
  CHECK(cut[0].size() == std::size_t{1} << 20);
  CHECK(cut[1] == "end");
}

TEST_CASE("a file that is missing or a folder is refused") {
  const TestFolder folder;
  const auto nothing = [](std::string_view) {};
  CHECK_THROWS_AS(read_lines(folder.file("none.log"), nothing), InputError);
  CHECK_THROWS_AS(read_lines(folder.path, nothing), InputError);
}

}  // namespace plumb::test
