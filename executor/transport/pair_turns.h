#pragma once
// The two actions of an overlapped pair (schedules/phases.h) are two works of one rank that take turns. One of them
// computes. It gives its turn away where it waits for other ranks, so that its exchange goes on beside the other's
// compute.
//
// The turns follow from the two works alone and never from time, so that all ranks of a group that have the same two
// works start the group's collectives in the same order.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace plumb { inline namespace executor {

class PairTurns {
 public:
  PairTurns() = default;
  ~PairTurns();
  PairTurns(const PairTurns&) = delete;
  PairTurns& operator=(const PairTurns&) = delete;

  /// Runs both works and returns when both have ended. `first` begins, on the calling thread; `second` runs on a thread
  /// of this object. Throws the failure of the work that failed first.
  void run(const std::function<void()>& first, const std::function<void()>& second);

  /// True while two works run of which neither has ended.
  bool are_two() const;

  /// Gives the turn of the work that calls this to the other, and returns when it comes back. Throws RunAborted if the
  /// other has failed meanwhile.
  void give_away();

 private:
  void perform(std::size_t work, const std::function<void()>& of);
  void perform_second();

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  const std::function<void()>* second_ = nullptr;  // while it has not begun
  std::array<bool, 2> is_under_way_{};
  std::size_t turn_ = 0;
  std::exception_ptr failure_;
  bool closing_ = false;
  std::thread thread_;
};

}}  // namespace plumb::executor
