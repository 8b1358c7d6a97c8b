#pragma once
// The pieces of an overlapped pair's two actions as one call (schedules/phases.h). The actions take turns: each goes on
// until its next exchange, which stands on a stream of its own beside the other's kernels. The cpu backend takes the
// same turns (executor/transport/pair_turns.h), so that a group's exchanges come in the same order on both.

#include <vector>

#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

/// Returns the pieces of both in the order in which they are enqueued. Behind the last of them all exchanges are over.
std::vector<RecordedPiece> interleaved_pieces(std::vector<RecordedPiece> first, std::vector<RecordedPiece> second);

}}  // namespace plumb::executor
