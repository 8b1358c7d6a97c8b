#pragma once
// How many activations a rank holds, by issue order: no clock is needed, because a rank runs its list in order.

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// [stage] true where a weight gradient, or a whole backward, ends the life of its activations.
std::vector<bool> stages_with_backward(const Schedule& schedule);

/// Activations are counted in chunks (in slices where sequences are sliced): one from its F to the last part of its
/// backward, W where the backward is split; in a schedule without backwards, none outlives its F.
struct RankLiveness {
  std::vector<int> held;  ///< [position] while the action there runs, those of other ranks not among them
  int guests = 0;         ///< the most that its partner p-1-r has EVICTed to it at once
  int peak = 0;           ///< max(held) + guests: exact without EVICT, a bound with it
};

/// [rank], for a schedule that breaks no rule of schedules/rules/validate.h.
std::vector<RankLiveness> liveness(const Schedule& schedule);

}}  // namespace plumb::schedules
