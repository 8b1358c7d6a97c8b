#include "tools/files.h"

#include <sys/stat.h>

#include <string>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/tools/test_folder.h"

namespace plumb::test {

TEST_CASE("what is written is read back, and nothing else stays in the folder") {
  const TestFolder folder;
  write_file(folder.file("a.json"), "one");
  write_file(folder.file("a.json"), "two");
  CHECK(read_file(folder.file("a.json")) == "two");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a byte order mark is no part of a text") {
  const TestFolder folder;
  const std::string path = folder.file("marked.csv");
  write_file(path, std::string("\xEF\xBB\xBF") + "0F0,0B0\n");
  CHECK(read_text_file(path) == "0F0,0B0\n");
}

TEST_CASE("a path that cannot be read says why") {
  const TestFolder folder;
  CHECK_THROWS_AS(read_file(folder.file("absent")), InputError);
  CHECK_THROWS_AS(read_file(folder.path), InputError);
}

TEST_CASE("a path that cannot be written throws and leaves nothing behind") {
  const TestFolder folder;
  CHECK_THROWS_AS(write_file(folder.file("no/such/folder.json"), "x"), InputError);
  CHECK_THROWS_AS(require_writable(folder.file("no/such/folder.json")), InputError);
  CHECK_THROWS_AS(write_file(folder.path, "x"), InputError);
  CHECK_THROWS_AS(require_writable(folder.path), InputError);
  CHECK(folder.entries() == 0);
}

TEST_CASE("asking whether a file can be written does not touch it") {
  const TestFolder folder;
  write_file(folder.file("a"), "kept");
  require_writable(folder.file("a"));
  require_writable(folder.file("b"));
  CHECK(read_file(folder.file("a")) == "kept");
  CHECK(folder.entries() == 1);
}

}  // namespace plumb::test
