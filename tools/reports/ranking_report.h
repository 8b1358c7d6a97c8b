#pragma once
// The rows of `plumb plan`: the best layouts, of one setting or of several.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tools/inputs/plan_input.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {

/// Returns a table with a line for each row. Columns say in what the settings differ, what the goal is measured by, how
/// far a row is from the best, which part of the step makes most of the difference, and how many variants it has.
TextTable ranking_table(const PlannedSettings& planned);

/// Returns how many tokens (samples, where these are no sequences) a dollar or a joule trains, or the p95 of the step,
/// by its key; null for goals that are the step's time.
nlohmann::ordered_json goal_json(const PlannedSettings& planned, const SettingRow& row);

}}  // namespace plumb::tools
