#pragma once
// A token bucket, as tc's tbf is one: a network card that lets a burst pass at once after an idle time and the rest at
// its rate, first in first out. It counts in time: a message needs bytes / rate, and the burst is worth its bytes /
// rate.

#include <algorithm>

#include "schedules/time.h"

namespace plumb { inline namespace schedules {

class TokenBucket {
 public:
  /// Passes a message that is ready at that moment, behind all that passed before. Returns when its last byte has left.
  /// The bucket is full at the beginning. Between messages it fills with time, up to `burst`.
  SimTime pass(SimTime ready, SimTime needed, SimTime burst) {
    const SimTime start = std::max(ready, free_at_);
    const SimTime tokens = is_full_ ? burst : std::min(burst, tokens_ + (start - free_at_));
    is_full_ = false;
    tokens_ = std::max(SimTime{0}, tokens - needed);
    free_at_ = start + std::max(SimTime{0}, needed - tokens);
    return free_at_;
  }

  /// Returns when the last byte of the last message has left.
  SimTime free_at() const { return free_at_; }

 private:
  SimTime tokens_{0};
  SimTime free_at_{0};
  bool is_full_ = true;
};

}}  // namespace plumb::schedules
