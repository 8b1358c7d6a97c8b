#pragma once
// Counts the activations that a rank holds, in issue order. No clock is needed, because a rank runs its list in order.

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Returns [stage]: true where the last part of a backward ends the life of the stage's activations.
std::vector<bool> stages_with_backward(const Schedule& schedule);

/// Activations are counted in chunks (in slices where sequences are sliced). One lives from its F to the last part of
/// its backward, which is W where the backward is split. In a schedule without backwards, none outlives its F.
struct RankLiveness {
  std::vector<int> held;  ///< [position] activations held while the action there runs, without those of other ranks
  int guests = 0;         ///< the most that its partner p-1-r has EVICTed to it at once
  int peak = 0;           ///< max(held) + guests: exact without EVICT, a bound with it
};

/// Returns [rank] its activations. The schedule must break no rule of schedules/rules/validate.h.
std::vector<RankLiveness> liveness(const Schedule& schedule);

}}  // namespace plumb::schedules
