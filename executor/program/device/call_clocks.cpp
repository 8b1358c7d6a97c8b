#include "executor/program/device/call_clocks.h"

#include <algorithm>

namespace plumb { inline namespace executor {

void CallClocks::begin(int rank, DeviceStream stream) {
  const std::size_t index = static_cast<std::size_t>(rank) * kDeviceStreamCount + static_cast<std::size_t>(stream);
  const std::int32_t before = last_[index];
  ended_.resize(ended_.size() + streams_, 0);
  stream_of_.push_back(index);
  place_.push_back(before < 0 ? 1 : place_[static_cast<std::size_t>(before)] + 1);
  last_[index] = newest();
  if (before >= 0) wait({.call = before});
}

void CallClocks::wait(const DeviceWait& wait) {
  std::int32_t* own = ended_before(newest());
  const std::int32_t* other = ended_before(wait.call);
  for (std::size_t s = 0; s < streams_; ++s) own[s] = std::max(own[s], other[s]);
  if (wait.bucket != DeviceWait::kEnd) return;  // the call itself has not ended, but the calls that it waited for have
  const auto at = static_cast<std::size_t>(wait.call);
  own[stream_of_[at]] = std::max(own[stream_of_[at]], place_[at]);
}

void CallClocks::add(const DeviceCall& call) {
  begin(call.rank, call.stream);
  for (const DeviceWait& each : call.waits) wait(each);
}

bool CallClocks::precedes(std::int32_t earlier, std::int32_t later) const {
  const auto at = static_cast<std::size_t>(earlier);
  return ended_before(later)[stream_of_[at]] >= place_[at];
}

}}  // namespace plumb::executor
