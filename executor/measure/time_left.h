#pragma once
// The rest of a time budget.

#include <chrono>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Counts from its construction on; negative when the time is over.
class TimeLeft {
 public:
  explicit TimeLeft(Seconds budget) : budget_(budget) {}

  /// Returns the time left of the first `part`, from 0 to 1, of the budget.
  Seconds operator()(double part = 1) const {
    return part * budget_ - std::chrono::duration_cast<Seconds>(std::chrono::steady_clock::now() - begin_);
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Seconds budget_;
};

}}  // namespace plumb::executor
