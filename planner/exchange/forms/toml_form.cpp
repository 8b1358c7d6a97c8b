#include "planner/exchange/forms/toml_form.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/exchange/forms/line_reader.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/trimmed.h"

namespace plumb { inline namespace planner {
namespace {

std::string_view section_of(std::string_view key) {
  return key.substr(0, std::min(key.rfind('.'), key.size()));
}

/// Joins the lines of a list that is closed on a later one.
bool is_open_list(std::string_view value) {
  return value.starts_with('[') && std::ranges::count(value, '[') > std::ranges::count(value, ']');
}

}  // namespace

std::string toml_text(const Settings& settings, std::string_view head) {
  std::string text(head);
  std::string_view section;
  for (const auto& [key, value] : settings) {
    if (section_of(key) != section) {
      section = section_of(key);
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    text += fmt::format("{} = {}\n", std::string_view(key).substr(section.size() + 1), json_line(value));
  }
  return text;
}

Settings read_toml(std::string_view text, const std::string& file) {
  Settings settings;
  std::string section;
  const std::vector<SettingsLine> lines = settings_lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [raw, number] = lines[i];
    const std::string_view line = trimmed(raw);
    if (line.starts_with("[[")) fail_at(file, number, "lists of tables are not read: give one table of each name");
    if (line.starts_with('[') && line.ends_with(']')) {
      section = std::string(trimmed(line.substr(1, line.size() - 2))) + ".";
      continue;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) fail_at(file, number, "neither [section] nor key = value: mend the line");
    std::string value(trimmed(line.substr(equals + 1)));
    while (is_open_list(value) && i + 1 < lines.size()) value += trimmed(lines[++i].text);
    settings.emplace_back(section + std::string(trimmed(line.substr(0, equals), " \t\"'")),
                          read_value(value, {.yes = {"true"}, .no = {"false"}}, file, number));
  }
  return settings;
}

}}  // namespace plumb::planner
