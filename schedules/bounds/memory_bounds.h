#pragma once
// Bounds by the memory of one rank: how often a micro-batch can go from its forward to its gradient and free
// the place for the next one.

#include "schedules/bounds/lane_times.h"
#include "schedules/bounds/lower_bound.h"

namespace plumb { inline namespace schedules {

/// Returns the bound by a cycle of tight memory. `held` and `entering` are positions of one rank, the first not behind
/// the second. When micro-batch k begins its forward at `entering`, the rank holds its activations of all of its
/// positions up to there, and so at most L = 1 + (memory - those) / (bytes of `held`) micro-batches of `held`. That
/// forward therefore waits until micro-batch k - L has freed `held`, at its input gradient, or at its weight gradient
/// where the input gradient frees nothing: a cycle later than its own forward at `entering`. Micro-batch m-1 starts
/// (m-1)/L whole cycles, and (m-1) mod L forwards, behind the first one, and then goes its way through the later
/// stages and back. Micro-batches are numbered on each stage in the order in which they come.
LowerBound memory_cycle_bound(const OrderQuestion& question, const LaneTimes& lane, int held, int entering);

/// Returns the bound by bytes times time on one rank: each activation of each of its stages stays at least
/// from its forward through the later stages to its gradient, and they share the rank's memory. It is the way
/// of the first micro-batch to the rank, that sum divided by the memory, and the drain where the last
/// backward is whole.
LowerBound memory_time_bound(const OrderQuestion& question, const LaneTimes& lane, int rank);

}}  // namespace plumb::schedules
