#pragma once
// An emulated link, which computes when a message that is sent now would arrive. The message leaves by a network card
// that lets a burst pass at once and the rest at the link's rate (schedules/token_bucket.h). Latency delays the arrival
// only. Without a burst the link is the simulator's: bytes / bandwidth, then latency.
//
//   EmulatedLink link({.latency = Seconds{1e-3}, .bytes_per_second = 1e8});
//   link.send(card, ready, 1'000'000)   -> {.start = ready, .end = ready + 11 ms}

#include <cstdint>

#include "executor/transport/transport.h"
#include "schedules/cost_table.h"
#include "schedules/time.h"
#include "schedules/token_bucket.h"

namespace plumb { inline namespace executor {

class EmulatedLink {
 public:
  /// Throws SpecError if the latency or the burst is negative, or the bandwidth not positive.
  EmulatedLink(const LinkCost& cost, std::int64_t burst_bytes = 0);

  /// Sends a message that is ready at the moment `ready`, behind all that have left by the card. Returns when it begins
  /// to move and when it has arrived.
  TransferTimes send(TokenBucket& card, SimTime ready, std::int64_t bytes) const;

 private:
  LinkCost cost_;
  std::int64_t burst_bytes_;
};

}}  // namespace plumb::executor
