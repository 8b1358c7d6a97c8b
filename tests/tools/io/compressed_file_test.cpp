#include "tools/io/compressed_file.h"

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/tools/test_folder.h"

namespace plumb::test {
namespace {

std::string all_of(CompressedFile& file) {
  std::ostringstream text;
  text << file.stream().rdbuf();
  return text.str();
}

std::string compressed(const std::string& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return path;
}

}  // namespace

TEST_CASE("what is in a compressed file is read, and a plain file as it is") {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i);  // more than a block
  CompressedFile packed(compressed(folder.file("a.gz"), text));
  CHECK(all_of(packed) == text);
  CHECK(packed.fault().empty());
  std::ofstream(folder.file("plain.json")) << text;
  CompressedFile plain(folder.file("plain.json"));
  CHECK(all_of(plain) == text);
}

TEST_CASE("data that are cut short or spoiled are said, and a missing file or a folder is refused") {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i * 7919 % 10007);
  const std::string path = compressed(folder.file("a.gz"), text);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  CompressedFile cut(path);
  CHECK(all_of(cut).size() < text.size());
  CHECK(cut.fault().find("cut short") != std::string::npos);
  CHECK_THROWS_WITH_AS(CompressedFile(folder.file("none")), doctest::Contains("no such file"), InputError);
  CHECK_THROWS_WITH_AS(CompressedFile(folder.path), doctest::Contains("folder"), InputError);
}

}  // namespace plumb::test
