#include "tools/io/wrapped.h"

#include <algorithm>
#include <array>

#include "tools/io/utf8.h"

namespace plumb { inline namespace tools {
namespace {

constexpr char kHeldBlank = '\x01';  ///< stands for a blank at which no line ends

/// Returns the text with a held blank between each number and its unit.
std::string with_units_held(std::string_view given) {
  constexpr std::array<std::string_view, 10> kHeld{"%", "s", "ms", "us", "ns", "ps", "MiB", "GiB", "TiB", "tokens/s"};
  std::string text(given);
  for (std::size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
    const std::string_view behind = std::string_view(text).substr(at + 1);
    const std::string_view word = behind.substr(0, behind.find_first_of(" ,;:)"));
    const bool is_number = at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9';
    if (is_number && std::ranges::find(kHeld, word) != kHeld.end()) text[at] = kHeldBlank;
  }
  return text;
}

}  // namespace

std::string wrapped(std::string_view given, std::size_t width, std::size_t column) {
  const std::string held = with_units_held(given);
  std::string_view text = held;
  std::string result;
  std::size_t at = column;  // of the line under way
  while (!text.empty()) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) break;
    text.remove_prefix(first);
    const std::string_view word = text.substr(0, std::min(text.find(' '), text.size()));
    text.remove_prefix(word.size());
    const bool begins = at == column;
    if (!begins && at + 1 + width_of(word) > width) {
      result += "\n" + std::string(column, ' ');
      at = column;
    } else if (!begins) {
      result += ' ';
      ++at;
    }
    result += word;
    at += width_of(word);
  }
  std::ranges::replace(result, kHeldBlank, ' ');
  return result;
}

std::string folded(std::string_view lines, std::size_t width) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    const std::size_t indentation = std::min(line.find_first_not_of(' '), line.size());
    if (width_of(line) <= width) {
      text += line;
    } else {
      text += std::string(indentation, ' ') + wrapped(line, width, indentation);
    }
    if (end < lines.size()) text += '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

}}  // namespace plumb::tools
