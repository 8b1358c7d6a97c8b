#pragma once
// What ranks hold at once, from the order of their compute actions alone. Each rank's memory is largest at one of few
// moments: those at which no other moment, in the same action of the same kind of stage, has as many activations of
// every kind of the rank's stages or more. These moments are worked out once for an order; bytes then are a sum over
// them.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

/// How many micro-batches (slices) of a kind of stages are held in each form.
struct HeldCount {
  int forward = 0;  ///< what F keeps, of those whose I has not run
  int rebuilt = 0;  ///< what recomputation has brought back, of the same
  int waiting = 0;  ///< for W, what I has left

  friend bool operator==(const HeldCount&, const HeldCount&) = default;
};

/// A moment at which a rank may hold most: one of its actions runs.
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

/// `kind_of_stage` names the stages that cost the same.
HeldOrder held_order(const Schedule& schedule, std::span<const int> kind_of_stage);

/// [rank] the most bytes that the compute actions of a rank hold at once, model state included: what a simulation finds
/// without the overlap of collectives and without received messages. `kinds` has a stage for each kind.
std::vector<std::int64_t> memory_in_issue_order(const CostTable& kinds, const HeldOrder& order);

}}  // namespace plumb::planner
