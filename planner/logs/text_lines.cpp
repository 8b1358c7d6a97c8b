#include "planner/logs/text_lines.h"

#include <algorithm>
#include <charconv>
#include <string>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/forms/trimmed.h"

namespace plumb { inline namespace planner {
std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(separator, at), line.size());
    cells.push_back(trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return cells;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

void fail_at_line(const std::string& file, std::size_t line, const std::string& message) {
  throw SpecError(fmt::format("{}:{}: {}", file, line + 1, message));
}

std::optional<double> number_behind(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + key.size());
  const std::size_t first = line.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return std::nullopt;
  line.remove_prefix(first);
  std::string digits;
  for (const char c : line.substr(0, line.find_first_not_of("0123456789.,eE+-"))) {
    if (c != ',') digits += c;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

}}  // namespace plumb::planner
