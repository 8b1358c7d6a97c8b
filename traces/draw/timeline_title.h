#pragma once
// What a timeline of a schedule is called.

#include <string>

#include "schedules/schedule.h"

namespace plumb { inline namespace traces {

/// "1f1b p=4 m=8": p ranks, m micro-batches. "interleaved p=4 v=2 m=8" where a rank runs two parts of the model;
/// "chimera p=4 m=8, 2 copies" where each part is on two stages.
std::string timeline_title(const Schedule& schedule);

}}  // namespace plumb::traces
