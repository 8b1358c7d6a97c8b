#pragma once
// The title of a schedule's timeline.

#include <string>

#include "schedules/schedule.h"

namespace plumb { inline namespace traces {

/// Returns "1f1b p=4 m=8" for p ranks and m micro-batches, "interleaved p=4 v=2 m=8" where a rank runs two parts of the
/// model, and "chimera p=4 m=8, 2 copies" where each part is on two stages.
std::string timeline_title(const Schedule& schedule);

}}  // namespace plumb::traces
