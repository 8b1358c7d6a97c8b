#pragma once
// The exposed communication of each rank, which no computing hides, as JSON and as a table.

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "simulator/path/exposed.h"

namespace plumb { inline namespace tools {

/// Returns {"computing_s", "tensor_s", "context_s", ..., "messages_s", "gathers_s", "reductions_s", "moves_s",
/// "waiting_s"}.
nlohmann::ordered_json exposed_json(const ExposedTime& time);

/// Returns true if some rank has anything but computing and waiting.
bool has_communication(const std::vector<ExposedTime>& ranks);

/// Returns a table with a row for each rank and a column for each cause that some rank has. Where `on_path` is known,
/// the last column is the communication of that rank on the critical path. `time` writes a time.
std::string exposed_text(const std::vector<ExposedTime>& ranks, const std::vector<ExposedTime>& on_path,
                         const std::function<std::string(SimTime)>& time);

}}  // namespace plumb::tools
