#pragma once
// Writes a run as the settings of a trainer (exchange/target.h).
//
//   const Exported exported = export_settings(target, facts_of(model, training, layout));
//   if (!exported.refused.empty()) say(exported.refused.front());   // "torchtitan cannot express bucket_mib=40: ..."

#include <string>
#include <vector>

#include "planner/exchange/forms/settings.h"
#include "planner/exchange/target.h"

namespace plumb { inline namespace planner {

struct Exported {
  Settings settings;                 ///< in the order of the target's table
  std::vector<std::string> refused;  ///< facts that the target cannot express, each a sentence with a remedy
  std::vector<std::string> notes;    ///< facts that belong elsewhere, each group a sentence
};

/// Returns the settings of the run with these facts. Where something is refused, they are not those of the run.
Exported export_settings(const Target& target, Facts facts);

}}  // namespace plumb::planner
