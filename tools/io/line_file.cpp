#include "tools/io/line_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

void append(std::string& line, std::string_view part) {
  line += part.substr(0, kLongestLine - std::min(kLongestLine, line.size()));
}

}  // namespace

void read_lines(const std::string& path, const std::function<void(std::string_view line)>& take) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw InputError(fmt::format("{}: there is no such file: check the path", path));
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(fmt::format("{}: this is a folder: name a file in it", path));
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(kBlock);
  std::string line;
  bool is_first = true;
  const auto hand_on = [&] {
    std::string_view text = line;
    if (is_first && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    if (text.ends_with('\r')) text.remove_suffix(1);
    is_first = false;
    take(text);
    line.clear();
  };
  while (file) {
    file.read(block.data(), kBlock);
    std::string_view rest(block.data(), static_cast<std::size_t>(file.gcount()));
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      append(line, rest.substr(0, end));
      hand_on();
      rest.remove_prefix(end + 1);
    }
    append(line, rest);
  }
  if (!file.eof()) throw InputError(fmt::format("{}: this file cannot be read: check that you may read it", path));
  if (!line.empty()) hand_on();
}

}}  // namespace plumb::tools
