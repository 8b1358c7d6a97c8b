#pragma once
// In an asynchronous schedule: which actions work with weights that their stage has replaced since.

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// [action id] the OPTIMIZER_STEP (id) that has replaced the version of the weights with which an F, R, B, I or W
/// works; -1 where it works with the newest, or with none. Throws what weight_versions() throws.
std::vector<std::int32_t> weight_replacers(const Schedule& lowered);

}}  // namespace plumb::executor
