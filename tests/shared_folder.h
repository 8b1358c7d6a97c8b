#pragma once
// The folder of other programs' answers and of published rows. It lies beside a developer's checkout (../shared), not
// in it; PLUMB_SHARED names another one. A case that needs a file of it and does not find it says so and ends:
//
//   const auto text = shared_text("oracles/pipedream/runs.jsonl");
//   if (!text) return;

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include <doctest/doctest.h>

namespace plumb::test {

/// PLUMB_SHARED, or without it the folder beside the source tree. It need not exist.
inline std::filesystem::path shared_folder() {
  if (const char* given = std::getenv("PLUMB_SHARED")) return given;
  const char* source = std::getenv("PLUMB_SOURCE");
  return std::filesystem::path(source == nullptr ? "." : source) / ".." / "shared";
}

/// A file or folder of the shared folder. Where it is not there: nothing, and a message "skipped: ...", which
/// tests/house/count_results.py repeats.
inline std::optional<std::filesystem::path> shared_path(const std::string& path) {
  const std::filesystem::path found = shared_folder() / path;
  if (std::filesystem::exists(found)) return found;
  MESSAGE("skipped: no " << path << " (set PLUMB_SHARED to the folder that holds it)");
  return std::nullopt;
}

/// The text of a file of the shared folder, or nothing, like shared_path().
inline std::optional<std::string> shared_text(const std::string& path) {
  const std::optional<std::filesystem::path> found = shared_path(path);
  if (!found) return std::nullopt;
  std::ifstream file(*found);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace plumb::test
