#pragma once
// Bounds by the memory of one rank: how often a micro-batch can go from its forward to its gradient and free
// the place for the next one.

#include "schedules/bounds/lane_times.h"
#include "schedules/bounds/lower_bound.h"

namespace plumb { inline namespace schedules {

/// Returns the bound by the cycle of one stage (the steady state of a tight memory). The rank holds L
/// micro-batches of the stage. Forward k + L therefore waits for the input gradient of k, or for its weight
/// gradient where the input gradient frees nothing: a cycle later. Micro-batch m-1 starts (m-1)/L whole
/// cycles, and (m-1) mod L forwards, behind the first one, and then goes its way through the later stages and
/// back.
LowerBound memory_cycle_bound(const OrderQuestion& question, const LaneTimes& lane, int position);

/// Returns the bound by bytes times time on one rank: each activation of each of its stages stays at least
/// from its forward through the later stages to its gradient, and they share the rank's memory. It is the way
/// of the first micro-batch to the rank, that sum divided by the memory, and the drain where the last
/// backward is whole.
LowerBound memory_time_bound(const OrderQuestion& question, const LaneTimes& lane, int rank);

}}  // namespace plumb::schedules
