#pragma once
// `plumb schedule search --curve`: time against memory in place of one order.

#include <vector>

#include "schedules/search/search_schedule.h"
#include "tools/inputs/arguments.h"
#include "tools/inputs/search_input.h"

namespace plumb { inline namespace tools {

/// Answers the questions at several memories, prints the tables (or JSON) and draws the chart; returns the exit code.
int schedule_curve(const ScheduleVerbArguments& arguments, const std::vector<SearchQuestion>& asked,
                   const SearchEffort& effort);

}}  // namespace plumb::tools
