#pragma once
// What is left of a time that runs.

#include <chrono>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Counts from its making on; negative when the time is over.
class TimeLeft {
 public:
  explicit TimeLeft(Seconds budget) : budget_(budget) {}

  /// Of a part of the time, from 0 to 1, that comes first.
  Seconds operator()(double part = 1) const {
    return part * budget_ - std::chrono::duration_cast<Seconds>(std::chrono::steady_clock::now() - begin_);
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Seconds budget_;
};

}}  // namespace plumb::executor
