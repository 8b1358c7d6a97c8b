#pragma once
// Shards are the pieces of one model part that several ranks hold, as vocabulary parallelism cuts the output layer
// (Yeung et al. 2024). They are the stages of one lane that have the same model part. Every micro-batch passes through
// all of them at once.
//
//   stages 0..3 with model parts 0 1 2 2 of one lane: stages 2 and 3 are the shards of part 2

#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Says what stages exchange with shards. These exchanges are collectives of the ranks that hold the shards, not
/// messages: a stage has no neighbour (StageNeighbors) beyond them, and their time belongs to the costs of the action
/// that waits. All lists are empty where a schedule has no shards.
struct Shards {
  std::vector<std::vector<int>> before;    ///< [stage] the stages whose forwards its forward waits for
  std::vector<std::vector<int>> behind;    ///< [stage] the stages whose input gradients its backward waits for
  std::vector<std::vector<int>> siblings;  ///< [stage] the other shards of its part

  bool any() const { return !siblings.empty(); }
};
Shards shards_of(const Schedule& schedule);

/// True if several stages of one lane have the same model part.
bool has_shards(const Schedule& schedule);

}}  // namespace plumb::schedules
