#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "tests/ptx/read/statement.h"

namespace plumb::test {

/// Returns the text of a file. Throws ptx::PtxError if it cannot be read.
inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw ptx::PtxError(fmt::format("{} cannot be read", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace plumb::test
