#include "planner/exchange/forms/python_form.h"

#include <cctype>

#include <fmt/format.h>

#include "planner/exchange/forms/line_reader.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/trimmed.h"

namespace plumb { inline namespace planner {
namespace {

std::string literal(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.is_null() ? "None" : json_line(value);
}

/// True for "cfg.model.seq_length": names with dots between them.
bool is_path(std::string_view text) {
  bool dot = false;
  for (const char letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '_' && letter != '.') return false;
    dot = dot || letter == '.';
  }
  return dot;
}

}  // namespace

std::string python_text(const Settings& settings, std::string_view head) {
  std::string text(head);
  text += "def apply(cfg):\n";
  for (const auto& [key, value] : settings) text += fmt::format("    cfg.{} = {}\n", key, literal(value));
  return text + "    return cfg\n";
}

/// Assignments of a value to a path count, `cfg.` left out; also without it, as a command line overrides them. All
/// else is code, which is not run: what it sets cannot be known.
Settings read_python(std::string_view text, const std::string& file) {
  Settings settings;
  for (const auto& [raw, number] : settings_lines(text)) {
    const std::string_view line = trimmed(raw);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || line.substr(equals).starts_with("==")) continue;
    std::string_view path = trimmed(line.substr(0, equals));
    if (!is_path(path)) continue;
    if (path.starts_with("cfg.")) path.remove_prefix(4);
    settings.emplace_back(
        path, read_value(line.substr(equals + 1),
                         {.yes = {"True"}, .no = {"False"}, .nothing = {"None"}, .expressions = true}, file, number));
  }
  return settings;
}

}}  // namespace plumb::planner
