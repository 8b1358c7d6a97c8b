#pragma once
// The training of planner/budget/goodput.h is interrupted at random. The formulas are held against it.
//
//   simulate_goodput(hourly, Seconds{270}, {.seed = 1, .interruptions = 20000})

#include <cstdint>

#include "planner/budget/goodput.h"

namespace plumb { inline namespace planner {

struct GoodputRun {
  std::uint64_t seed = 1;
  int interruptions = 20000;  ///< after which the run ends
};

struct SimulatedGoodput {
  double goodput = 0;
  double standard_error = 0;  ///< of the goodput
};

/// Plays the training from one interruption to the next: restart, then intervals of work with a checkpoint each. The
/// times between interruptions are exponential, and the same for every interval of one seed. The error is that of a
/// ratio of sums over independent cycles (Asmussen & Glynn 2007, IV.4). Nothing may be infinite.
SimulatedGoodput simulate_goodput(const Interruptions& interruptions, Seconds interval, const GoodputRun& run);

/// Returns the interval with the largest simulated goodput. The time for each second of work is fitted by
/// c + a tau + b / tau over intervals around the best so far, and is least at sqrt(b/a). The search begins at twice
/// young_interval(). Nothing may be infinite or 0.
Seconds simulated_best_interval(const Interruptions& interruptions, const GoodputRun& run);

}}  // namespace plumb::planner
