#pragma once
// Trainers to which plans are handed (planner/exchange/target.h), by name or by the file that they read.

#include <string>
#include <vector>

#include "planner/exchange/forms/settings.h"
#include "planner/exchange/logged_settings.h"
#include "planner/exchange/target.h"

namespace plumb { inline namespace tools {

/// The targets besides those of the presets: the order of a schedule in PyTorch's CSV, and execution traces.
inline constexpr const char* kTorchCsv = "torch-csv";
inline constexpr const char* kChakra = "chakra";

/// Returns the names of all targets.
std::vector<std::string> target_names();

/// Returns the target of a preset's name. Throws UsageError with all names if there is none.
Target target_input(const std::string& name);

/// Returns the name of the target that runs as that stack; empty if none does.
std::string target_of_stack(const std::string& stack);

/// Settings of a trainer, and the target that they are of.
struct TrainerSettings {
  Target target;
  Settings settings;
  Facts facts;  ///< what a log says of its run besides
};

/// Returns a reader of the settings that a log of any target prints.
LoggedSettingsReader logged_settings_reader();

/// Reads a trainer's file, or the log of its run. `name` is its target; empty: the one with most of the file's settings in its table. Throws
/// InputError with the place if the file cannot be read, or if its target cannot be told.
TrainerSettings trainer_settings_input(const std::string& path, const std::string& name);

}}  // namespace plumb::tools
