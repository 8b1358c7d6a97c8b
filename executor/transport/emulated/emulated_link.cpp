#include "executor/transport/emulated/emulated_link.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace executor {

EmulatedLink::EmulatedLink(const LinkCost& cost, std::int64_t burst_bytes) : cost_(cost), burst_bytes_(burst_bytes) {
  if (!(cost.latency.count() >= 0) || !(cost.bytes_per_second > 0) || burst_bytes < 0)
    throw SpecError(
        fmt::format("an emulated link of {} s latency, {} bytes/s and a burst of {} bytes: the first and "
                    "the last must not be negative, the bandwidth must be positive",
                    cost.latency.count(), cost.bytes_per_second, burst_bytes));
}

TransferTimes EmulatedLink::send(TokenBucket& card, SimTime ready, std::int64_t bytes) const {
  const auto time_of = [this](std::int64_t count) {
    return to_sim_time(Seconds{static_cast<double>(count) / cost_.bytes_per_second}, "a message on an emulated link");
  };
  const SimTime start = std::max(ready, card.free_at());
  const SimTime left = card.pass(ready, time_of(bytes), time_of(burst_bytes_));
  return {.start = start, .end = left + to_sim_time(cost_.latency, "the latency of an emulated link")};
}

}}  // namespace plumb::executor
