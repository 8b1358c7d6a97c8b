#pragma once
// The end of every page, and its file.

#include <string>

#include "planner/search/plan.h"
#include "tools/pages/page.h"

namespace plumb { inline namespace tools {

/// Ends the page with what repeats it, and writes it: the command, the version, and the plan where `plan` is not null.
void write_page(const std::string& path, Page page, const Plan* plan = nullptr);

}}  // namespace plumb::tools
