#pragma once
// What communication costs each rank that nothing hides, as JSON and as a table.

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "simulator/path/exposed.h"

namespace plumb { inline namespace tools {

/// {"computing_s", "tensor_s", "context_s", ..., "messages_s", "gathers_s", "reductions_s", "moves_s", "waiting_s"}.
nlohmann::ordered_json exposed_json(const ExposedTime& time);

/// True if some rank has anything but computing and waiting.
bool has_communication(const std::vector<ExposedTime>& ranks);

/// A row a rank, a column for each cause that some rank has, and behind it, where `on_path` is known, how much of the
/// critical path is communication of that rank. `time` writes a time.
std::string exposed_text(const std::vector<ExposedTime>& ranks, const std::vector<ExposedTime>& on_path,
                         const std::function<std::string(SimTime)>& time);

}}  // namespace plumb::tools
