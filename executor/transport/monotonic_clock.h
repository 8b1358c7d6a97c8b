#pragma once
// The clock that all processes of one machine share.

#include <ctime>

#include <cstdint>

namespace plumb { inline namespace executor {

/// Returns the reading of CLOCK_MONOTONIC in nanoseconds.
inline std::int64_t monotonic_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

}}  // namespace plumb::executor
