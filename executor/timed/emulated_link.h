#pragma once
// A link that is not there: when a message that is sent now would arrive. A token bucket, as tc's tbf shapes a network
// card: `burst_bytes` pass at once after an idle time, the rest at the rate; first in, first out; latency delays the
// arrival only. Without a burst it is the link of the simulator: bytes / bandwidth, then latency.
//
//   EmulatedLink link({.latency = Seconds{1e-3}, .bytes_per_second = 1e8});
//   link.send(ready, 1'000'000)   -> {.start = ready, .end = ready + 11 ms}

#include <cstdint>

#include "executor/transport.h"
#include "schedules/cost_table.h"
#include "schedules/time.h"

namespace plumb {

class EmulatedLink {
 public:
  /// Throws SpecError if the latency or the burst is negative, or the bandwidth not positive.
  EmulatedLink(const LinkCost& cost, std::int64_t burst_bytes = 0);

  /// A message that is ready at that moment, behind all that were sent before: when it begins to move and when it has
  /// arrived. Moments may be given in any order; each message queues behind the one before.
  TransferTimes send(SimTime ready, std::int64_t bytes);

 private:
  LinkCost cost_;
  double burst_bytes_;
  double tokens_;       // bytes that may pass at once
  SimTime free_at_{0};  // the last byte of the last message has left
};

}  // namespace plumb
