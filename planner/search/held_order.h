#pragma once
// The activations that ranks hold at once, from the order of their compute actions alone. A rank's memory is largest at
// one of few moments. A moment counts only if no other moment, in the same action of the same kind of stage, has as
// many activations or more of every kind of the rank's stages. The moments are found once for an order, and bytes are
// then a sum over them.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

/// Counts of the micro-batches (slices) that a kind of stages holds in each form.
struct HeldCount {
  int forward = 0;  ///< micro-batches whose F has run and whose I has not: their kept activations
  int rebuilt = 0;  ///< those of them whose activations recomputation has brought back
  int waiting = 0;  ///< micro-batches whose I has run and whose W has not: the activations that W needs

  friend bool operator==(const HeldCount&, const HeldCount&) = default;
};

/// A moment, during one of its actions, at which a rank may hold most.
struct HeldMoment {
  int kind = 0;           ///< of the action's stage
  bool forward = false;   ///< it is F or R, not B, I or W
  std::size_t first = 0;  ///< of its counts, one for each of the rank's kinds
};

struct HeldOrder {
  struct Rank {
    std::vector<std::pair<int, int>> kinds;  ///< (kind, how many of the rank's stages are of it)
    std::vector<HeldMoment> moments;
  };
  std::vector<Rank> ranks;
  std::vector<HeldCount> counts;
};

/// Finds the moments of an order. Stages of one number in `kind_of_stage` cost the same.
HeldOrder held_order(const Schedule& schedule, std::span<const int> kind_of_stage);

/// [rank] the most bytes that the compute actions of a rank hold at once, model state included: what a simulation finds
/// without the overlap of collectives and without received messages. `kinds` has a stage for each kind.
std::vector<std::int64_t> memory_in_issue_order(const CostTable& kinds, const HeldOrder& order);

}}  // namespace plumb::planner
