#pragma once
// Reads a run from the settings of a trainer (exchange/target.h).
//
//   Facts known{{"devices", 64}};                                   // what the user says besides
//   const Imported imported = import_settings(target, settings, std::move(known), "run.sh");
//   imported.run.layout, imported.stack, imported.ignored

#include <string>
#include <vector>

#include "planner/exchange/forms/settings.h"
#include "planner/exchange/target.h"

namespace plumb { inline namespace planner {

struct Imported {
  ReadRun run;
  std::string stack;                 ///< the stack that the target's runs have; empty: none is described
  std::vector<std::string> ignored;  ///< keys that say nothing of a run's layout, or nothing that is modelled
};

/// Throws SpecError "PLACE: ..." for a value that has no counterpart in a run, settings that contradict each other, and
/// runs that the target does not do.
Imported import_settings(const Target& target, const Settings& settings, Facts known, const std::string& place);

/// Returns how many of the settings are in the target's table, so that the target of a file can be told.
int known_settings(const Target& target, const Settings& settings);

}}  // namespace plumb::planner
