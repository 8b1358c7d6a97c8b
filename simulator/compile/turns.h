#pragma once
// The queue of the dry run that fixes the order of the steps: ranks take turns, first in, first out. A rank that waits
// for a register to be given out is out of the queue until then.

#include <deque>
#include <vector>

#include "simulator/compile/compiled_schedule.h"

namespace plumb { inline namespace simulator {

class Turns {
 public:
  explicit Turns(int ranks) : waits_for_(static_cast<std::size_t>(ranks), nullptr) {
    for (int rank = 0; rank < ranks; ++rank) queue_.push_back(rank);
  }

  bool empty() const { return queue_.empty(); }
  int next() {
    const int rank = queue_.front();
    queue_.pop_front();
    return rank;
  }
  void again(int rank) { queue_.push_back(rank); }
  void wait(int rank, const Register* input) { waits_for_[rank] = input; }

  /// Wakes the rank if it waits for just that.
  void arrived(int rank, const Register* input) {
    if (waits_for_[rank] != input) return;
    waits_for_[rank] = nullptr;
    queue_.push_back(rank);
  }

 private:
  std::deque<int> queue_;
  std::vector<const Register*> waits_for_;  ///< [rank]
};

}}  // namespace plumb::simulator
