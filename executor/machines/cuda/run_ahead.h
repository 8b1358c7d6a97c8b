#pragma once
// Bounds how far the host is ahead of a GPU's stream. A stream's queue holds about a thousand launches, and a launch
// that finds it full blocks the host. While it is blocked, nobody notices that a peer is gone.

#include <cuda_runtime.h>

#include <array>

namespace plumb { inline namespace executor { namespace cuda {

class RunAhead {
 public:
  RunAhead() = default;
  ~RunAhead();
  RunAhead(const RunAhead&) = delete;
  RunAhead& operator=(const RunAhead&) = delete;

  /// Makes its events; before the first add().
  void settle();

  /// Counts a few launches before they are put on the stream. Behind each kOfMark of them it records an event, and
  /// returns true: before the next launch the caller waits for room. Throws RunError as check() does.
  bool add(cudaStream_t stream, int launches);

  /// True if at most 2 kOfMark launches are on the stream. Throws RunError if the stream's work has failed.
  bool has_room() const;

 private:
  static constexpr int kOfMark = 250;

  std::array<cudaEvent_t, 2> marks_{};  // the last two
  int since_ = 0;                       // launches since the last mark
};

}}}  // namespace plumb::executor::cuda
