#include "tools/io/line_file.h"

#include <algorithm>
#include <vector>

#include "tools/io/gzip.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

void append(std::string& line, std::string_view part) {
  line += part.substr(0, kLongestLine - std::min(kLongestLine, line.size()));
}

}  // namespace

void read_lines(const std::string& path, const std::function<void(std::string_view line)>& take) {
  InputStream file(path);
  read_lines(file, take);
}

void read_lines(std::istream& file, const std::function<void(std::string_view line)>& take) {
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
  if (!line.empty()) hand_on();
}

}}  // namespace plumb::tools
