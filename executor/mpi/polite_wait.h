#pragma once
// Waiting for what other processes do, without MPI's blocking calls: those spin, and wait for ever where a link is cut.

#include <functional>
#include <optional>
#include <string>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

struct PoliteWait {
  int rank = 0;                     ///< that waits
  std::string what;                 ///< it waits for: "rank 1"
  std::optional<Seconds> patience;  ///< none: for ever
  Seconds eager{100e-6};            ///< so long it asks without a pause
};

/// Returns when has_ended() says so. After `eager` it sleeps between its questions, a little longer each time: the
/// others may need the core. Throws RunError, "rank 0, outside its actions, waited for rank 1, and for 60 s nothing
/// came", when `patience` is over: rank 0 first, whose end is the others', the others half a second later.
void wait_politely(const PoliteWait& wait, const std::function<bool()>& has_ended);

}}  // namespace plumb::executor
