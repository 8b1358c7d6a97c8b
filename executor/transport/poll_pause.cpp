#include "executor/transport/poll_pause.h"

#include <algorithm>
#include <thread>

namespace plumb { inline namespace executor {

void PollPause::pause() {
  if (std::chrono::steady_clock::now() - start_ < eager_) return;
  std::this_thread::sleep_for(next_);
  next_ = std::min(2 * next_, longest_);
}

}}  // namespace plumb::executor
