#pragma once
// Bounds by what one rank must do, for the micro-batches of one lane.

#include "schedules/bounds/lane_times.h"
#include "schedules/bounds/lower_bound.h"

namespace plumb { inline namespace schedules {

/// Positions `first` to `last` of a lane as far as they lie on one rank, which is that of both. What is
/// between them on other ranks does not belong to it.
struct RankStretch {
  int first = 0;
  int last = 0;
};

/// Returns the bound by a rank's work:
///   the way of the first micro-batch to it
/// + all forwards, input gradients and weight gradients of the stretch
/// + the time that it idles: before the first input gradient is there it can run nothing but forwards, and not
///   more of them than its memory holds
/// + with whole backwards, the way from its last one to an end that counts (drain).
LowerBound rank_work_bound(const OrderQuestion& question, const LaneTimes& lane, const RankStretch& stretch);

/// Returns the bound by the drain behind a rank, which with split backwards is another one:
///   the way of the first micro-batch to it, and its idling, as above
/// + all forwards and input gradients of the stretch
/// + the weight gradients that must run before its last forward, since its memory would not hold it otherwise
/// + the way from its last input gradient back to an end that counts, with a weight gradient there.
LowerBound drain_bound(const OrderQuestion& question, const LaneTimes& lane, const RankStretch& stretch);

}}  // namespace plumb::schedules
