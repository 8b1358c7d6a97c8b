#pragma once
// A device's needs for a plan besides weights, gradients and optimizer state, as JSON and as text: the arena that is
// planned for each rank, its calls by stream, and its events.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "executor/program/device/device_program.h"

namespace plumb { inline namespace tools {

/// Returns {"events", "ranks": [{"rank", "arena_bytes", "live_bytes", "buffers", "calls": {"compute": 12, ...}}, ...]}.
nlohmann::ordered_json arena_json(const DeviceProgram& program);

/// Returns these numbers as a table with a row for each rank.
std::string arena_text(const DeviceProgram& program);

}}  // namespace plumb::tools
