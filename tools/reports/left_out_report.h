#pragma once
// A report of what is true of rows that nobody has looked at: the errors of predictions for sources (frameworks, devices) that are
// left out in turn, and how many of their rows lie in the intervals that are fitted on the others.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/score/fit_error_bars.h"

namespace plumb { inline namespace tools {

struct LeftOut {
  std::string by;  ///< "each-source", "each-framework" or "each-device"
  std::vector<LeftOutGroup> groups;
  ErrorBars bars;  ///< fitted on all rows
};

std::string left_out_text(const LeftOut& left_out);

/// A section of Markdown, with the claims of other predictors beside it.
std::string left_out_page(const LeftOut& left_out, const std::vector<SourceScore>& scores);

nlohmann::ordered_json to_json(const LeftOut& left_out);

}}  // namespace plumb::tools
