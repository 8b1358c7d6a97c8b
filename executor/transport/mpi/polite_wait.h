#pragma once
// Waits for other processes without MPI's blocking calls, which spin, and which wait for ever where a link is cut.

#include <functional>
#include <optional>
#include <string>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

struct PoliteWait {
  int rank = 0;                     ///< rank that waits
  std::string what;                 ///< object of the wait: "rank 1"
  std::optional<Seconds> patience;  ///< longest wait; none: for ever
  Seconds eager{100e-6};            ///< time in which it polls without a pause
};

/// Returns when has_ended() returns true, which it asks with the pauses of executor/transport/poll_pause.h. When
/// `patience` is over it throws RunError, "rank 0, outside its actions, waited for rank 1, and for 60 s nothing came".
/// Rank 0 throws first, which ends the others; these throw half a second later.
void wait_politely(const PoliteWait& wait, const std::function<bool()>& has_ended);

}}  // namespace plumb::executor
