#pragma once
// A GPU in parts: each rank has a green context with SMs of its own (executor/program/device/sm_split.h). All parts share
// the memory, its bandwidth, L2 and the copy engines. No green context is ever made current: work goes to their
// streams.

#include <cuda.h>
#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

namespace plumb { inline namespace executor { namespace cuda {

class GreenContexts {
 public:
  /// Makes a context for each rank; the device's primary context must be alive. If the driver does not have green
  /// contexts, or refuses to make them, there are none, and refused() says why. Throws SpecError as
  /// split_multiprocessors() does.
  GreenContexts(int device, int ranks, const std::vector<int>& shares);
  ~GreenContexts();
  GreenContexts(const GreenContexts&) = delete;
  GreenContexts& operator=(const GreenContexts&) = delete;

  bool empty() const { return contexts_.empty(); }
  const std::string& refused() const { return refused_; }
  const std::vector<int>& multiprocessors() const { return multiprocessors_; }  ///< [rank]

  /// Makes a stream in the context of a rank, with a priority of CUDA's. Throws RunError if the driver refuses.
  cudaStream_t make_stream(int rank, int priority) const;

 private:
  struct Driver;

  bool make(int device, int ranks, const std::vector<int>& shares);
  void destroy();

  std::unique_ptr<const Driver> driver_;  // functions of the driver
  std::vector<CUgreenCtx> contexts_;      // [rank]
  std::vector<int> multiprocessors_;
  std::string refused_;
};

}}}  // namespace plumb::executor::cuda
