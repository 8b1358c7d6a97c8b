#include "executor/transport/pair_turns.h"

#include <cassert>
#include <utility>

#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

PairTurns::~PairTurns() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PairTurns::run(const std::function<void()>& first, const std::function<void()>& second) {
  {
    const std::lock_guard lock(mutex_);
    assert(!is_under_way_[0] && !is_under_way_[1]);
    is_under_way_ = {true, true};
    turn_ = 0;
    second_ = &second;
    if (!thread_.joinable()) thread_ = std::thread(&PairTurns::perform_second, this);
  }
  perform(0, first);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_under_way_[1]; });
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

bool PairTurns::are_two() const {
  const std::lock_guard lock(mutex_);
  return is_under_way_[0] && is_under_way_[1];
}

void PairTurns::give_away() {
  std::unique_lock lock(mutex_);
  assert(is_under_way_[0] && is_under_way_[1]);
  const std::size_t own = turn_;
  turn_ = 1 - own;
  changed_.notify_all();
  changed_.wait(lock, [&] { return turn_ == own; });
  if (failure_ != nullptr) throw RunAborted("the other action of the pair has failed");
}

/// Does a work whose turn it is. Behind its end the turn is the other's for good.
void PairTurns::perform(std::size_t work, const std::function<void()>& of) {
  std::exception_ptr failure;
  try {
    of();
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) failure_ = failure;
    is_under_way_[work] = false;
    turn_ = 1 - work;
  }
  changed_.notify_all();
}

/// The loop of the second works' thread.
void PairTurns::perform_second() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || (second_ != nullptr && turn_ == 1); });
    if (second_ == nullptr) return;
    const std::function<void()>& second = *std::exchange(second_, nullptr);
    const bool begins = failure_ == nullptr;  // behind a failure of the first it does not begin
    lock.unlock();
    perform(1, begins ? second : std::function<void()>([] {}));
    lock.lock();
  }
}

}}  // namespace plumb::executor
