#pragma once
// The score of the simulation alone against published runs whose operations were timed, as text.

#include <string>
#include <vector>

#include "planner/score/timed_score.h"

namespace plumb { inline namespace tools {

/// Return a table for a terminal, and a section of Markdown; empty if there are no scores.
std::string timed_text(const std::vector<TimedScore>& scores);
std::string timed_page(const std::vector<TimedScore>& scores);

}}  // namespace plumb::tools
