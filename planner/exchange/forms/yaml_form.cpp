#include "planner/exchange/forms/yaml_form.h"

#include <fmt/format.h>

#include "planner/exchange/forms/line_reader.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/trimmed.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::string_view kIndent = "  ";

const ValueWords kWords{
    .yes = {"true", "True", "yes"}, .no = {"false", "False", "no"}, .nothing = {"null", "~", ""}, .bare_words = true};

/// Returns how many sections of the path the other one has, too.
std::size_t shared_sections(const std::vector<std::string>& path, const std::vector<std::string>& other) {
  std::size_t shared = 0;
  while (shared + 1 < path.size() && shared + 1 < other.size() && path[shared] == other[shared]) ++shared;
  return shared;
}

std::vector<std::string> names_of(std::string_view key) {
  std::vector<std::string> names{""};
  for (const char letter : key) {
    if (letter == '.') {
      names.emplace_back();
    } else {
      names.back() += letter;
    }
  }
  return names;
}

std::string indent(std::size_t level) {
  std::string blanks;
  for (std::size_t i = 0; i < level; ++i) blanks += kIndent;
  return blanks;
}

/// A section that is open while its lines are indented more than its key.
struct Section {
  std::size_t column = 0;
  std::string path;
};

}  // namespace

std::string yaml_text(const Settings& settings, std::string_view head) {
  std::string text(head);
  std::vector<std::string> before;
  for (const auto& [key, value] : settings) {
    const std::vector<std::string> names = names_of(key);
    for (std::size_t level = shared_sections(names, before); level + 1 < names.size(); ++level)
      text += fmt::format("{}{}:\n", indent(level), names[level]);
    text += fmt::format("{}{}: {}\n", indent(names.size() - 1), names.back(), json_line(value));
    before = names;
  }
  return text;
}

Settings read_yaml(std::string_view text, const std::string& file) {
  Settings settings;
  std::vector<Section> open;
  for (const auto& [line, number] : settings_lines(text)) {
    const std::size_t column = line.find_first_not_of(' ');
    std::string_view rest = line.substr(column);
    if (rest == "---" || rest == "...") continue;
    if (rest.starts_with('\t')) fail_at(file, number, "YAML is not indented by tabs: use blanks");
    while (!open.empty() && open.back().column >= column && !rest.starts_with('-')) open.pop_back();
    if (rest.starts_with('-')) {
      // An item of the list that the last key opened.
      if (settings.empty() || !(settings.back().second.is_null() || settings.back().second.is_array()))
        fail_at(file, number, "this item belongs to no list: give its key on a line before it");
      const std::string_view item = trimmed(rest.substr(1));
      settings.back().second.push_back(item.find(": ") == std::string_view::npos
                                           ? read_value(item, kWords, file, number)
                                           : nlohmann::json(std::string(item)));
      continue;
    }
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos || (colon + 1 < rest.size() && rest[colon + 1] != ' ')) {
      // A line of a list's item, or of a text over several lines, says nothing by itself.
      if (!settings.empty() && !open.empty() && column > open.back().column) continue;
      fail_at(file, number, "neither key: value nor an item of a list: mend the line");
    }
    // A key that opens a section holds nothing itself.
    if (!open.empty() && settings.back().second.is_null() && settings.back().first + "." == open.back().path)
      settings.pop_back();
    const std::string key =
        (open.empty() ? "" : open.back().path) + std::string(trimmed(rest.substr(0, colon), " \"'"));
    const std::string_view value = trimmed(rest.substr(colon + 1));
    settings.emplace_back(key, value == "{}" ? nlohmann::json() : read_value(value, kWords, file, number));
    if (value.empty()) open.push_back({.column = column, .path = key + "."});
  }
  return settings;
}

}}  // namespace plumb::planner
