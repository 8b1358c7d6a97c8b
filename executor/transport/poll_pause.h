#pragma once
// The pauses between the questions of one that waits for others.

#include <chrono>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Does not pause in the first `eager` seconds, when the answer is likely to come. After them it sleeps 5 us, and each
/// time twice as long, up to `longest`, since the others may need the core.
class PollPause {
 public:
  explicit PollPause(Seconds eager = Seconds{100e-6},
                     std::chrono::microseconds longest = std::chrono::microseconds{200})
      : eager_(eager), longest_(longest) {}

  /// Returns the pauses of one that waits for a GPU, which runs out of work soon.
  static PollPause of_device() { return PollPause(Seconds{100e-6}, std::chrono::microseconds{20}); }

  void pause();
  /// Starts again, when some of what is waited for has come.
  void restart() { *this = PollPause(eager_, longest_); }

 private:
  Seconds eager_;
  std::chrono::microseconds longest_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::microseconds next_{5};
};

}}  // namespace plumb::executor
