#pragma once
// Interruptions give a training on some devices its checkpoints, its goodput and its spare nodes.

#include <cstdint>
#include <optional>

#include "planner/budget/goodput.h"
#include "planner/budget/reliability_spec.h"
#include "planner/budget/simulated_goodput.h"

namespace plumb { inline namespace planner {

struct ResilienceQuestion {
  int devices = 0;
  int nodes = 0;
  double checkpoint_bytes = 0;
  std::optional<Seconds> interval;  ///< of checkpoints; nothing: the best one
  GoodputRun run;
};

struct Resilience {
  Interruptions interruptions;
  double checkpoint_bytes = 0;
  Seconds interval{0};
  double goodput = 0;          ///< by the formula
  SimulatedGoodput simulated;  ///< goodput 1 where nothing interrupts
  int spare_nodes = 0;
};

/// Probability with which no node is missing for want of a spare.
inline constexpr double kSpareProbability = 0.99;

/// All nodes write their shares of a checkpoint side by side while the training waits. A repair is of one node for each
/// interruption.
Resilience resilience(const ReliabilitySpec& spec, const ResilienceQuestion& question);

}}  // namespace plumb::planner
