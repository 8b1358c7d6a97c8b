#include "planner/exchange/forms/line_reader.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/forms/trimmed.h"
#include "schedules/forms/whole_number.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// Follows the quotes and brackets of a line from letter to letter.
struct Nesting {
  char quote = 0;
  int depth = 0;

  void pass(char letter) {
    if (quote != 0) {
      if (letter == quote) quote = 0;
      return;
    }
    if (letter == '"' || letter == '\'') quote = letter;
    if (letter == '[') ++depth;
    if (letter == ']') --depth;
  }
};

std::string_view without_comment(std::string_view line) {
  Nesting nesting;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool opens = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
    if (line[i] == '#' && opens && nesting.quote == 0) return line.substr(0, i);
    nesting.pass(line[i]);
  }
  return line;
}

bool is_one_of(const std::vector<std::string_view>& words, std::string_view text) {
  return std::ranges::find(words, text) != words.end();
}

/// Digits may be grouped by an underscore: 1_000.
std::optional<json> number_in(std::string_view text) {
  std::string digits(text);
  if (!digits.empty() && std::isdigit(static_cast<unsigned char>(digits.back())) != 0) std::erase(digits, '_');
  if (digits.starts_with('+')) digits.erase(0, 1);
  if (const auto whole = whole_number<std::int64_t>(digits)) return *whole;
  if (const auto real = whole_number<double>(digits)) return *real;
  return std::nullopt;
}

/// Reads "[a, [b, c]]", whose brackets are known to close.
json list_in(std::string_view text, const ValueWords& words, const std::string& file, int line, int depth) {
  if (depth > kDeepestJson) fail_at(file, line, "lists lie too deep inside each other: give fewer brackets");
  json list = json::array();
  std::string_view inner = text.substr(1, text.size() - 2);
  Nesting nesting;
  std::size_t start = 0;
  const auto take = [&](std::size_t end) {
    const std::string_view item = trimmed(inner.substr(start, end - start), " \t\r\n");
    if (item.starts_with('[') && item.ends_with(']')) {
      list.push_back(list_in(item, words, file, line, depth + 1));
    } else if (!item.empty()) {
      list.push_back(read_value(item, words, file, line));
    }
    start = end + 1;
  };
  for (std::size_t i = 0; i < inner.size(); ++i) {
    nesting.pass(inner[i]);
    if (inner[i] == ',' && nesting.depth == 0 && nesting.quote == 0) take(i);
  }
  take(inner.size());
  return list;
}

}  // namespace

std::vector<SettingsLine> settings_lines(std::string_view text) {
  std::vector<SettingsLine> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = without_comment(text.substr(0, end));
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (!line.empty()) lines.push_back({.text = line, .number = number});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void fail_at(const std::string& file, int line, const std::string& message) {
  throw SpecError(fmt::format("{}:{}: {}", file, line, message));
}

json read_value(std::string_view text, const ValueWords& words, const std::string& file, int line) {
  text = trimmed(text);
  const auto otherwise = [&](const std::string& why) {
    if (!words.expressions) fail_at(file, line, why);
    return json(std::string(text));
  };
  if (is_one_of(words.yes, text)) return true;
  if (is_one_of(words.no, text)) return false;
  if (is_one_of(words.nothing, text)) return {};
  if (const auto number = number_in(text)) return *number;
  const char first = text.empty() ? ' ' : text.front();
  if (first == '"' || first == '\'') {
    const std::size_t end = text.find(first, 1);
    if (end != text.size() - 1 || text.size() < 2 || text.find('\\') != std::string_view::npos)
      return otherwise(
          fmt::format("the text {} is not read: close its quote, and use no backslash", text.substr(0, 60)));
    return std::string(text.substr(1, text.size() - 2));
  }
  if (first == '[') {
    Nesting nesting;
    for (const char letter : text) nesting.pass(letter);
    if (nesting.depth != 0 || nesting.quote != 0 || text.back() != ']')
      return otherwise("the list does not end: close its bracket");
    return list_in(text, words, file, line, 0);
  }
  if (words.bare_words && !text.empty() && std::string_view("{&*!|>%@`").find(first) == std::string_view::npos)
    return std::string(text);
  return otherwise(fmt::format("the value \"{}\" is not read: give a number, a text in quotes, or a list of these",
                               text.substr(0, 60)));
}

}}  // namespace plumb::planner
