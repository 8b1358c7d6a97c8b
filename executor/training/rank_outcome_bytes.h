#pragma once
// Converts a rank's outcome to bytes and back, to send it to the process that reports.

#include <string>
#include <string_view>

#include "executor/training/run_result.h"

namespace plumb { inline namespace executor {

std::string to_bytes(const RankOutcome& outcome);

/// rank_outcome_from_bytes(to_bytes(outcome)) is the outcome. Throws RunError if the bytes end early or too late.
RankOutcome rank_outcome_from_bytes(std::string_view bytes);

}}  // namespace plumb::executor
