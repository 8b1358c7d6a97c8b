#pragma once
// Converts a rank's replay to bytes and back, to send it to the process that reports. Both processes run the same
// program on the same kind of machine.

#include <string>
#include <string_view>

#include "executor/timed/timed_rank.h"

namespace plumb { inline namespace executor {

std::string to_bytes(const TimedRank& rank);

/// timed_rank_from_bytes(to_bytes(rank)) == rank. Throws RunError if the bytes end early or too late.
TimedRank timed_rank_from_bytes(std::string_view bytes);

}}  // namespace plumb::executor
