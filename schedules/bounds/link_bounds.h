#pragma once
// Bounds by the messages that one link must carry, one at a time.

#include "schedules/bounds/lane_times.h"
#include "schedules/bounds/lower_bound.h"

namespace plumb { inline namespace schedules {

/// The two kinds of messages of a hop, which have channels of their own.
enum class HopKind : std::uint8_t { kActivation, kGradient };

/// Returns the bound by the messages of a kind from one rank to another, over all stages that meet there:
///   the way of the first micro-batch to where the first of them can leave
/// + the time for which each of them has the link to itself
/// + the way from the arrival of the last one to an end that counts, the shortest over those stages.
/// Nothing where the link lets any number of messages pass at once.
LowerBound link_bound(const LaneTimes& lane, int from_rank, int to_rank, HopKind kind);

}}  // namespace plumb::schedules
