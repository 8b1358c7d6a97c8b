#pragma once
// Work on a played stream that runs until the test ends it, as a kernel does whose peers do not come.

#include <memory>
#include <utility>

#include "tests/executor/machines/cuda/played/state.h"

namespace plumb::test {

class HeldWork {
 public:
  static constexpr int kForEver = 1 << 30;

  /// `looks`: it ends by itself when the device has looked at it so often.
  explicit HeldWork(cudaStream_t stream, int looks = kForEver) : left_(std::make_shared<int>(looks)) {
    played::State& state = played::State::get();
    const std::lock_guard lock(state.mutex);
    state.put(stream, {.work =
                           [&state, left = left_, runs = false]() mutable {
                             if (!std::exchange(runs, true)) state.note_progress();
                             return --*left <= 0;
                           },
                       .graph = nullptr});
  }
  ~HeldWork() { end(); }
  HeldWork(const HeldWork&) = delete;
  HeldWork& operator=(const HeldWork&) = delete;

  void end() {
    const std::lock_guard lock(played::State::get().mutex);
    *left_ = 0;
  }

 private:
  std::shared_ptr<int> left_;
};

}  // namespace plumb::test
