#pragma once
// The share of its time in which an interrupted training comes forward, and the interval between checkpoints that makes
// it largest. The training works for an interval, writes a checkpoint, and goes on; an interruption loses the work since
// the last checkpoint that was complete, and costs a restart, which may be interrupted too.
//
//   const Interruptions hourly{.mean_between = Seconds{3600}, .restart = Seconds{60}, .checkpoint = Seconds{10}};
//   goodput(hourly, best_interval(hourly))   // 0.91

#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct Interruptions {
  Seconds mean_between{0};  ///< M, of exponentially distributed times; may be infinite
  Seconds restart{0};       ///< R, until the training works again
  Seconds checkpoint{0};    ///< delta, for which the training waits while one is written
};

/// Returns useful time over all time for checkpoints behind every `interval` tau of work:
///   tau / (M e^(R/M) (e^((tau+delta)/M) - 1))
/// Source: Daly 2006, "A higher order estimate of the optimum checkpoint interval", equation 20.
double goodput(const Interruptions& interruptions, Seconds interval);

/// Returns sqrt(2 delta M). Source: Young 1974, equation 1.
Seconds young_interval(const Interruptions& interruptions);

/// Returns the interval of Daly's higher order estimate:
///   sqrt(2 delta M) (1 + sqrt(delta/(2M))/3 + delta/(18 M)) - delta for delta < 2M, else M.
/// Source: Daly 2006, equation 37.
Seconds daly_interval(const Interruptions& interruptions);

/// Returns the interval at which goodput() is largest: (1 - tau/M) e^((tau+delta)/M) = 1, solved by bisection. It is
/// infinite where nothing interrupts or a checkpoint takes no time and interrupts nothing.
Seconds best_interval(const Interruptions& interruptions);

}}  // namespace plumb::planner
