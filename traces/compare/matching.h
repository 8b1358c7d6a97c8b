#pragma once
// Matches two timelines of one schedule, action by action.

#include <cstdint>
#include <vector>

#include "traces/timeline.h"

namespace plumb { inline namespace traces {

/// Returns, for each [rank][span of `a`], the span of the same action on the same rank of `b` (its k-th where the
/// action occurs k times), or -1 where `b` has none. Throws InputError if the timelines differ in ranks, stages or
/// compute actions, and so are not of one schedule.
std::vector<std::vector<std::int32_t>> match_spans(const Timeline& a, const Timeline& b);

}}  // namespace plumb::traces
