#pragma once
// An action, or an overlapped pair (DualPipe), lasts one phase after the other. A phase has two lanes that start
// together: one computes or waits, the other has what goes on beside it. The phase ends with its later lane.
//
//   An action by itself is one phase: the segments that block it, and those beside them.
//
//   An overlapped pair is two: the collectives that block one action go on beside the other's compute.
//     F: 4 s computing, 2 s all-to-all    phases: {4 s of F | 6 s all-to-all of B}, {8 s of B | 2 s all-to-all of F}
//     B: 8 s computing, 6 s all-to-all            6 + 8 = 14 s, while the two by themselves last 20 s
//
// So DeepSeek-V3 hides the exchanges of its experts (DeepSeek-AI 2024, section 3.2.1). A cost table's segments are sums
// over a stage's layers. In a run the two actions take turns, exchange by exchange (executor/transport/pair_turns.h): with n
// exchanges spread evenly, all but the first and the last n-th of the collectives have compute of the other beside them.

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/cost_table.h"

namespace plumb { inline namespace schedules {

/// A segment of an action: of the first of a pair (0) or of the second (1).
struct LaneSegment {
  const Segment* segment = nullptr;
  std::uint8_t action = 0;
};

struct CostPhase {
  std::vector<LaneSegment> blocking;  ///< one after the other
  std::vector<LaneSegment> beside;    ///< one after the other
};

/// True if the two passes of an overlapped pair take turns at their exchanges. Two of one stage do so if one of them is
/// a forward (STP); otherwise they follow each other, since both add to the gradients of the same weights.
bool take_turns(const Action& first, const Action& second);

/// Returns the phases of an action, or of the two actions of an overlapped pair. The two follow each other where they
/// do not take turns, or where one has segments beside its own compute. `actions`: one or two; the result points
/// into `costs`.
std::vector<CostPhase> phases_of(const CostTable& costs, std::span<const Action> actions);

/// Returns how long the two actions of an overlapped pair last together. Throws as duration_of does.
SimTime pair_duration(const CostTable& costs, const Action& first, const Action& second);

}}  // namespace plumb::schedules
