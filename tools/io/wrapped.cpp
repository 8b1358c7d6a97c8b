#include "tools/io/wrapped.h"

#include <algorithm>

namespace plumb { inline namespace tools {

std::string wrapped(std::string_view text, std::size_t width, std::size_t column) {
  std::string result;
  std::size_t at = column;  // of the line under way
  while (!text.empty()) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) break;
    text.remove_prefix(first);
    const std::string_view word = text.substr(0, std::min(text.find(' '), text.size()));
    text.remove_prefix(word.size());
    const bool begins = at == column;
    if (!begins && at + 1 + word.size() > width) {
      result += "\n" + std::string(column, ' ');
      at = column;
    } else if (!begins) {
      result += ' ';
      ++at;
    }
    result += word;
    at += word.size();
  }
  return result;
}

}}  // namespace plumb::tools
