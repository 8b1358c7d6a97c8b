#pragma once
// A GPU in parts: for each rank a green context with SMs of its own (executor/device_plan/sm_split.h). Memory, its
// bandwidth, L2 and copy engines stay common. No green context is ever made current: work goes to their streams.

#include <cuda.h>
#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

namespace plumb { inline namespace executor { namespace cuda {

class GreenContexts {
 public:
  /// The device's primary context is alive. Where the driver has no green contexts, or does not give them, there are
  /// none, and refused() says why. Throws SpecError as split_multiprocessors() does.
  GreenContexts(int device, int ranks, const std::vector<int>& shares);
  ~GreenContexts();
  GreenContexts(const GreenContexts&) = delete;
  GreenContexts& operator=(const GreenContexts&) = delete;

  bool empty() const { return contexts_.empty(); }
  const std::string& refused() const { return refused_; }
  const std::vector<int>& multiprocessors() const { return multiprocessors_; }  ///< [rank]

  /// Throws RunError if the driver gives none.
  cudaStream_t make_stream(int rank) const;

 private:
  struct Driver;

  bool make(int device, int ranks, const std::vector<int>& shares);
  void destroy();

  std::unique_ptr<const Driver> driver_;  // its functions
  std::vector<CUgreenCtx> contexts_;      // [rank]
  std::vector<int> multiprocessors_;
  std::string refused_;
};

}}}  // namespace plumb::executor::cuda
