#pragma once

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

namespace plumb::test {

/// A folder that is deleted with the test.
struct TestFolder {
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "plumb-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() { std::filesystem::remove_all(path); }

  std::string file(const std::string& name) const { return path + "/" + name; }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }

  std::string path;
};

}  // namespace plumb::test
