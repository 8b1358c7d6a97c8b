#pragma once
// Published runs whose operations were timed, held against simulation alone, for a person to read.

#include <string>
#include <vector>

#include "planner/score/timed_score.h"

namespace plumb { inline namespace tools {

/// A table for a terminal, and a section of Markdown; empty where there are no scores.
std::string timed_text(const std::vector<TimedScore>& scores);
std::string timed_page(const std::vector<TimedScore>& scores);

}}  // namespace plumb::tools
