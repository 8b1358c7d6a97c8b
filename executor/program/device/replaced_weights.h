#pragma once
// The actions of an asynchronous schedule that work with weights that their stage has replaced since.

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// Returns [action id] the OPTIMIZER_STEP (id) that has replaced the version of the weights that an F, R, B, I or W
/// works with; -1 if it works with the newest version, or with none. Throws what weight_versions() throws.
std::vector<std::int32_t> weight_replacers(const Schedule& lowered);

}}  // namespace plumb::executor
