#include "tools/io/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <filesystem>
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

TEST_CASE("a text that is written as it is made stands there whole, or not at all where its making fails") {
  const TestFolder folder;
  const std::string path = folder.file("a.json");
  write_file(path, [&](const auto& take) {
    take("one, ");
    CHECK(folder.entries() == 1);  // a temporary one
    CHECK_THROWS_AS(read_file(path), InputError);
    take("two");
  });
  CHECK(read_file(path) == "one, two");
  const auto fails = [](const auto& take) {
    take("half");
    throw InputError("no more");
  };
  CHECK_THROWS_WITH_AS(write_file(path, fails), "no more", InputError);
  CHECK(read_file(path) == "one, two");
  CHECK(folder.entries() == 1);
}

TEST_CASE("asking whether a file can be written does not touch it") {
  const TestFolder folder;
  write_file(folder.file("a"), "kept");
  require_writable(folder.file("a"));
  require_writable(folder.file("b"));
  CHECK(read_file(folder.file("a")) == "kept");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a symbolic link stays, and what it leads to is written, there or not") {
  const TestFolder folder;
  std::filesystem::create_directory(folder.file("in"));
  write_file(folder.file("in/real"), "old");
  std::filesystem::create_symlink("in/real", folder.file("near"));
  std::filesystem::create_symlink("near", folder.file("far"));
  std::filesystem::create_symlink("in/new", folder.file("dangling"));
  for (const char* name : {"far", "dangling"}) {
    require_writable(folder.file(name));
    write_file(folder.file(name), "new");
    CHECK(std::filesystem::is_symlink(folder.file(name)));
  }
  CHECK(read_file(folder.file("in/real")) == "new");
  CHECK(read_file(folder.file("in/new")) == "new");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.file("in")), {}) == 2);
  std::filesystem::create_symlink("round", folder.file("round"));
  CHECK_THROWS_WITH_AS(write_file(folder.file("round"), "x"), doctest::Contains("lead to each other"), InputError);
}

TEST_CASE("a FIFO gets the bytes and stays one") {
  const TestFolder folder;
  const std::string path = folder.file("fifo");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  require_writable(path);
  write_file(path, "through");
  std::array<char, 16> got{};
  CHECK(read(reader, got.data(), got.size()) == 7);
  CHECK(std::string(got.data()) == "through");
  close(reader);
  CHECK(std::filesystem::is_fifo(path));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a device gets the bytes and stays one") {
  const TestFolder folder;
  const std::string path = folder.file("null");
  if (mknod(path.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {  // only root can make one
    MESSAGE("skipped: devices are made by root");
    return;
  }
  const int probe = open(path.c_str(), O_WRONLY);
  if (probe < 0) {
    MESSAGE("skipped: this file system opens no devices");
    return;
  }
  close(probe);
  require_writable(path);
  write_file(path, "nowhere");
  CHECK(std::filesystem::is_character_file(path));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file that is replaced keeps its permissions") {
  const TestFolder folder;
  const std::string path = folder.file("a");
  write_file(path, "one");
  CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms{0644});
  std::filesystem::permissions(path, std::filesystem::perms{0600});
  write_file(path, "two");
  CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms{0600});
}

TEST_CASE("what killed writers have left is cleared away; what a living one writes, and what others own, stays") {
  const TestFolder folder;
  for (const char* name : {"a.aBcDeF.tmp", "a.gHiJkL.tmp", "a.short.tmp", "ab.aBcDeF.tmp"})
    write_file(folder.file(name), "half");
  const int living = open(folder.file("a.gHiJkL.tmp").c_str(), O_RDWR);
  REQUIRE(flock(living, LOCK_EX) == 0);
  write_file(folder.file("a"), "whole");
  CHECK_FALSE(std::filesystem::exists(folder.file("a.aBcDeF.tmp")));
  for (const char* name : {"a", "a.gHiJkL.tmp", "a.short.tmp", "ab.aBcDeF.tmp"})
    CHECK(std::filesystem::exists(folder.file(name)));
  close(living);
}

}  // namespace plumb::test
