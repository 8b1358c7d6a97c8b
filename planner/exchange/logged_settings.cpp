#include "planner/exchange/logged_settings.h"

#include <algorithm>
#include <utility>

#include "planner/exchange/forms/plain_value.h"
#include "planner/exchange/forms/settings_text.h"
#include "planner/logs/text_lines.h"
#include "schedules/error.h"
#include "schedules/forms/trimmed.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::size_t kLongestJson = std::size_t{1} << 20;
constexpr std::size_t kMostArguments = 4096;

/// Returns the line without what torchrun puts before it: "[rank0]:", "[default0]:".
std::string_view without_rank(std::string_view line) {
  if (!line.starts_with('[')) return line;
  constexpr std::size_t kLongestName = 16;
  const std::size_t end = line.find("]:");
  return end > kLongestName ? line : line.substr(end + 2);  // there may be none: npos is the largest number
}

/// Returns how many more objects a JSON text opens than it closes.
int open_objects(std::string_view text) {
  int open = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_text && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_text = !in_text;
    } else if (!in_text) {
      open += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    }
  }
  return open;
}

bool knows(const Target& target, std::string_view key) {
  return std::ranges::find(target.keys, key, &TargetKey::key) != target.keys.end();
}

Settings known_of(const Target& target, Settings settings) {
  std::erase_if(settings, [&](const auto& setting) { return !knows(target, setting.first); });
  return settings;
}

/// True for a value that stands for nothing: a flag that is off, or an argument that was not given.
bool is_off(std::string_view value) {
  return value == "None" || value == "False" || value.empty();
}

/// Returns a printed value; of a list, such as ['p2p'], the first item.
nlohmann::json value_of(std::string_view printed) {
  if (printed == "True") return true;
  if (printed.starts_with('[')) printed = trimmed(printed.substr(0, printed.find(',')), "[]'\"");
  return plain_value(printed);
}

/// Arguments as they are printed, each by its name.
class PrintedArguments {
 public:
  PrintedArguments(const LoggedForm& form, const std::vector<std::pair<std::string, std::string>>& printed)
      : form_(form), printed_(printed) {}

  Settings settings() const {
    Settings settings;
    for (const auto& [name, value] : printed_) {
      if (says_nothing(name, value)) continue;
      if (const auto negated = form_.negated.find(name); negated != form_.negated.end()) {
        if (value == "False") settings.emplace_back(negated->second, true);
      } else if (!is_off(value)) {
        settings.emplace_back(key_of(name), value_of(value));
      }
    }
    return settings;
  }

  Facts facts() const {
    Facts facts;
    for (const auto& [name, value] : printed_) {
      if (const auto fact = form_.facts.find(name); fact != form_.facts.end() && !is_off(value))
        facts[fact->second] = value_of(value);
    }
    return facts;
  }

 private:
  std::string printed(std::string_view name) const {
    const auto found = std::ranges::find(printed_, name, &std::pair<std::string, std::string>::first);
    return found == printed_.end() ? "None" : found->second;
  }

  bool says_nothing(const std::string& name, const std::string& value) const {
    if (const auto needed = form_.only_with.find(name); needed != form_.only_with.end()) {
      const std::string other = printed(needed->second);
      if (is_off(other) || other == "1") return true;  // a degree of one
    }
    const auto equal = form_.unless_equal.find(name);
    return equal != form_.unless_equal.end() && printed(equal->second) == value;
  }

  std::string key_of(const std::string& name) const {
    if (const auto renamed = form_.renamed.find(name); renamed != form_.renamed.end()) return renamed->second;
    std::string key = "--" + name;
    std::ranges::replace(key, '_', '-');
    return key;
  }

  const LoggedForm& form_;
  const std::vector<std::pair<std::string, std::string>>& printed_;
};

}  // namespace

LoggedSettingsReader::LoggedSettingsReader(std::vector<Target> targets) : targets_(std::move(targets)) {
  std::erase_if(targets_, [](const Target& target) { return !target.logged; });
}

void LoggedSettingsReader::take(std::string_view line) {
  if (found_) return;
  if (open_ != nullptr) return json_.empty() ? take_argument(line) : take_json(line);
  for (const Target& target : targets_) {
    const std::size_t at = line.find(target.logged->begin);
    if (at == std::string_view::npos) continue;
    if (target.form == SettingsForm::kArguments) {
      open_ = &target;
      return;
    }
    const std::size_t brace = line.find('{', at + target.logged->begin.size());
    if (brace == std::string_view::npos) continue;
    open_ = &target;
    return take_json(line.substr(brace));
  }
}

/// A line "  NAME ..... VALUE", behind whatever a launcher puts before it.
void LoggedSettingsReader::take_argument(std::string_view line) {
  if (line.find(open_->logged->end) != std::string_view::npos) {
    const PrintedArguments arguments(*open_->logged, arguments_);
    found_ = LoggedSettings{*open_, known_of(*open_, arguments.settings()), arguments.facts()};
    return;
  }
  const std::vector<std::string_view> words = words_of(line);
  const auto dots = std::ranges::find_if(
      words, [](std::string_view word) { return word.find_first_not_of('.') == std::string_view::npos; });
  if (dots == words.begin() || dots == words.end()) return;
  const char* value = dots->data() + dots->size();
  if (arguments_.size() == kMostArguments) {  // the end of the settings is not there
    open_ = nullptr;
    arguments_.clear();
    return;
  }
  arguments_.emplace_back(*(dots - 1), trimmed(line.substr(static_cast<std::size_t>(value - line.data()))));
}

void LoggedSettingsReader::take_json(std::string_view line) {
  json_ += without_rank(line);
  json_ += '\n';
  if (json_.size() > kLongestJson) {
    open_ = nullptr;
    json_.clear();
    return;
  }
  if (open_objects(json_) > 0) return;
  try {
    found_ = LoggedSettings{*open_, known_of(*open_, read_settings(SettingsForm::kJson, json_, "log")), {}};
  } catch (const InputError&) {  // another program's words that begin alike
    open_ = nullptr;
    json_.clear();
  }
}

std::optional<LoggedSettings> LoggedSettingsReader::finish() const {
  return found_;
}

}}  // namespace plumb::planner
