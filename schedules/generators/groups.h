#pragma once
// Micro-batches in groups give the order in which a rank with several chunks takes turns among them (looped placement).

#include <vector>

#include "schedules/action.h"

namespace plumb { inline namespace schedules {

/// Returns the sizes of the groups that `microbatches` fall into: as many groups as keep each at `smallest` or more,
/// with sizes that differ by one at most, the larger first (a group may not run ahead of a larger one after it).
std::vector<int> group_sizes(int microbatches, int smallest);

/// Returns the actions group by group: the first group's micro-batches run through all chunks of the rank, then the
/// second's, and so on.
///   turns_of_chunks(Op::kForward, {1, 4}, {2, 1})  ->  1F0 1F1 4F0 4F1 1F2 4F2
/// `stages` are the rank's stages in the order of their turns, ascending for forwards and descending for backwards.
std::vector<Action> turns_of_chunks(Op op, const std::vector<int>& stages, const std::vector<int>& groups);

/// Returns the stages of a rank in a looped placement: rank, rank + ranks, ... ascending.
std::vector<int> looped_stages(int rank, int ranks, int chunks);

}}  // namespace plumb::schedules
