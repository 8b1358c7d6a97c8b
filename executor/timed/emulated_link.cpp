#include "executor/timed/emulated_link.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb {

EmulatedLink::EmulatedLink(const LinkCost& cost, std::int64_t burst_bytes)
    : cost_(cost), burst_bytes_(static_cast<double>(burst_bytes)), tokens_(burst_bytes_) {
  if (!(cost.latency.count() >= 0) || !(cost.bytes_per_second > 0) || burst_bytes < 0)
    throw SpecError(
        fmt::format("an emulated link of {} s latency, {} bytes/s and a burst of {} bytes: the first and "
                    "the last must not be negative, the bandwidth must be positive",
                    cost.latency.count(), cost.bytes_per_second, burst_bytes));
}

TransferTimes EmulatedLink::send(SimTime ready, std::int64_t bytes) {
  const SimTime start = std::max(ready, free_at_);
  const auto size = static_cast<double>(bytes);
  if (std::isinf(cost_.bytes_per_second)) {
    free_at_ = start;
  } else {
    tokens_ = std::min(burst_bytes_, tokens_ + to_seconds(start - free_at_).count() * cost_.bytes_per_second);
    free_at_ = start + to_sim_time(Seconds{std::max(0.0, size - tokens_) / cost_.bytes_per_second});
    tokens_ = std::max(0.0, tokens_ - size);
  }
  return {.start = start, .end = free_at_ + to_sim_time(cost_.latency)};
}

}  // namespace plumb
