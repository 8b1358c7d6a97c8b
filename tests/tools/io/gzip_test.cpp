#include "tools/io/gzip.h"

#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/tools/test_folder.h"
#include "tools/io/files.h"

namespace plumb::test {
namespace {

std::string raw_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A text of that many lines, which packs well and is longer than a block.
std::string long_text(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

}  // namespace

TEST_CASE("a file whose name ends in .gz is packed, and every reader unpacks it") {
  const TestFolder folder;
  const std::string path = folder.file("text.json.gz"), text = long_text(100'000);
  write_file(path, text);
  const std::string packed = raw_bytes(path);
  CHECK(packed.starts_with("\x1f\x8b"));
  CHECK(packed.size() < text.size() / 3);
  CHECK(read_file(path) == text);
  write_file(path, text);
  CHECK(raw_bytes(path) == packed);
}

TEST_CASE("packed data are told by their first bytes, and a plain file stays what it is") {
  const TestFolder folder;
  const std::string packed = folder.file("a.gz"), renamed = folder.file("a.json"), plain = folder.file("plain.gz");
  write_file(packed, "{}");
  std::ofstream(renamed, std::ios::binary) << raw_bytes(packed);
  std::ofstream(plain, std::ios::binary) << "plain";
  CHECK(read_file(renamed) == "{}");
  CHECK(read_file(plain) == "plain");
  write_file(packed, "");
  CHECK(read_file(packed).empty());
}

TEST_CASE("packed data that are cut or damaged are refused") {
  const TestFolder folder;
  const std::string path = folder.file("a.gz");
  write_file(path, long_text(100'000));
  const std::string packed = raw_bytes(path);
  std::ofstream(path, std::ios::binary) << packed.substr(0, packed.size() / 2);
  CHECK_THROWS_AS(read_file(path), InputError);
  std::string damaged = packed;
  damaged[packed.size() / 2] ^= 0x55;
  std::ofstream(path, std::ios::binary) << damaged;
  CHECK_THROWS_AS(read_file(path), InputError);
}

TEST_CASE("pieces are packed as they come") {
  std::string packed;
  gzipped([](const auto& take) {
    for (int i = 0; i < 1000; ++i) take(long_text(10));
  })([&](std::string_view piece) { packed += piece; });
  const TestFolder folder;
  std::ofstream(folder.file("pieces"), std::ios::binary) << packed;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += long_text(10);
  CHECK(read_file(folder.file("pieces")) == text);
}

}  // namespace plumb::test
