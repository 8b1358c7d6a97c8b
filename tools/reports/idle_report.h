#pragma once
// Why ranks idle, as JSON and as a table.

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "traces/idle_causes.h"

namespace plumb { inline namespace tools {

/// {"warm_up_s": ..., "drain_s": ..., ...}: every cause, those that do not occur with 0.
nlohmann::ordered_json idle_json(const IdleByCause& idle);

/// A row a rank and a column for each cause that some rank has; empty if none idles. `time` writes a time.
std::string idle_text(const std::vector<IdleByCause>& ranks, const std::function<std::string(SimTime)>& time);

}}  // namespace plumb::tools
