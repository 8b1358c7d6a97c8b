#include "planner/exchange/forms/arguments_form.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/exchange/forms/line_reader.h"
#include "planner/exchange/forms/plain_value.h"
#include "schedules/forms/trimmed.h"

namespace plumb { inline namespace planner {
namespace {

bool is_option(std::string_view word) {
  return word.starts_with("--") && word.size() > 2;
}

/// A word that a shell would not take as it is stands in quotes.
std::string quoted(const std::string& word) {
  const bool plain = word.find_first_of(" \t\"$&*()[]|;<>?`\\") == std::string::npos && !word.empty();
  return plain ? word : fmt::format("\"{}\"", word);
}

/// Returns the words of the text, quotes taken off. A backslash at a line's end, brackets of a shell's array and an
/// assignment before it mean nothing.
std::vector<std::string> words_in(std::string_view text, const std::string& file) {
  std::vector<std::string> words;
  for (const auto& [line, number] : settings_lines(text)) {
    std::string word;
    char quote = 0;
    bool inside = false;
    const auto end = [&] {
      if (inside) words.push_back(word);
      word.clear();
      inside = false;
    };
    for (const char letter : line) {
      if (quote != 0 ? letter == quote : letter == '"' || letter == '\'') {
        quote = quote != 0 ? '\0' : letter;
        inside = true;
      } else if (quote == 0 && (letter == ' ' || letter == '\t' || letter == '=' || letter == '\\')) {
        end();
      } else if (quote == 0 &&
                 ((letter == '(' && word.empty()) || (letter == ')' && word.find('(') == std::string::npos))) {
        end();
      } else {
        word += letter;
        inside = true;
      }
    }
    if (quote != 0) fail_at(file, number, "a quote does not end on its line: close it");
    end();
  }
  return words;
}

}  // namespace

std::string arguments_text(const Settings& settings, std::string_view head) {
  std::string text(head);
  bool first = true;
  for (const auto& [key, value] : settings) {
    if (value == nlohmann::json(false)) continue;
    text += first ? "" : " \\\n  ";
    first = false;
    text += is_option(key) ? key : plain_text(value);  // words without dashes are the command's own
    if (is_option(key) && value != nlohmann::json(true)) text += " " + quoted(plain_text(value));
  }
  return text + "\n";
}

Settings read_arguments(std::string_view text, const std::string& file) {
  Settings settings;
  const std::vector<std::string> words = words_in(text, file);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_option(words[i])) continue;
    std::vector<std::string> values;
    while (i + values.size() + 1 < words.size() && !is_option(words[i + values.size() + 1]))
      values.push_back(words[i + values.size() + 1]);
    nlohmann::json value = true;
    if (!values.empty()) value = plain_value(values.front());
    settings.emplace_back(words[i], std::move(value));
  }
  return settings;
}

}}  // namespace plumb::planner
