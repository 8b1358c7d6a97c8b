#include "tools/inputs/target_input.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/exchange/import_settings.h"
#include "schedules/error.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/presets.h"
#include "tools/io/files.h"
#include "tools/io/line_file.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::array kForms{std::pair{".json", SettingsForm::kJson}, std::pair{".toml", SettingsForm::kToml},
                            std::pair{".yaml", SettingsForm::kYaml}, std::pair{".yml", SettingsForm::kYaml},
                            std::pair{".py", SettingsForm::kPython}};

/// Scripts and lists of arguments have any ending, or none.
SettingsForm form_by_ending(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  const auto found = std::ranges::find(kForms, ending, [](const auto& form) { return std::string(form.first); });
  return found == kForms.end() ? SettingsForm::kArguments : found->second;
}

std::vector<Target> all_targets() {
  std::vector<Target> targets;
  for (const Preset& preset : presets()) {
    if (preset.kind == Preset::Kind::kTarget) targets.push_back(parse_target(preset.text, std::string(preset.name)));
  }
  return targets;
}

TrainerSettings told_by_settings(const std::string& path, const std::string& text) {
  const SettingsForm form = form_by_ending(path);
  const Settings settings = read_settings(form, text, path);
  std::vector<std::pair<int, Target>> known;
  for (Target& target : all_targets()) {
    const int count = target.form == form ? known_settings(target, settings) : 0;
    if (count > 0) known.emplace_back(count, std::move(target));
  }
  if (known.empty() && is_of_kind(FileKind::kPlan, path))
    throw InputError(fmt::format(
        "{}: this is a plan of Plumb's: `plumb simulate` reads it, and `plumb export` writes it for a trainer", path));
  std::ranges::sort(known, std::greater{}, &std::pair<int, Target>::first);
  if (known.empty() || (known.size() > 1 && known[0].first == known[1].first)) {
    throw InputError(fmt::format("{}: its settings do not tell whose they are: name the target by --from, one of {}",
                                 path, fmt::join(target_names(), ", ")));
  }
  return {.target = std::move(known.front().second), .settings = settings};
}

}  // namespace

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.kind == Preset::Kind::kTarget) names.emplace_back(preset.name);
  }
  names.emplace_back(kTorchCsv);
  names.emplace_back(kChakra);
  return names;
}

Target target_input(const std::string& name) {
  for (Target& target : all_targets()) {
    if (target.name == name) return std::move(target);
  }
  throw UsageError(fmt::format("there is no target \"{}\": give {}", name, fmt::join(target_names(), ", ")));
}

std::string target_of_stack(const std::string& stack) {
  for (const Target& target : all_targets())
    if (std::ranges::any_of(target.stacks, [&](const auto& runs_as) { return runs_as.first == stack; }))
      return target.name;
  return {};
}

LoggedSettingsReader logged_settings_reader() {
  return LoggedSettingsReader(all_targets());
}

TrainerSettings trainer_settings_input(const std::string& path, const std::string& name) {
  std::optional<Target> target;
  if (!name.empty()) target = target_input(name);
  if (form_by_ending(path) == SettingsForm::kArguments) {
    LoggedSettingsReader reader = logged_settings_reader();
    read_lines(path, [&](std::string_view line) { reader.take(line); });
    if (std::optional<LoggedSettings> logged = reader.finish()) {
      if (target && target->name != logged->target.name) {
        throw InputError(fmt::format("{}: this is a log of {}, and not of {}: leave --from away", path,
                                     logged->target.name, target->name));
      }
      return {.target = std::move(logged->target),
              .settings = std::move(logged->settings),
              .facts = std::move(logged->facts)};
    }
  }
  const std::string text = read_text_file(path);
  if (!target) return told_by_settings(path, text);
  Settings settings = read_settings(target->form, text, path);
  return {.target = std::move(*target), .settings = std::move(settings)};
}

}}  // namespace plumb::tools
