#pragma once
// The GPUs of this process under NCCL, with a thread each; measure_nccl() times them. Their communicators block, since a
// launch on one that does not goes through a thread of NCCL's, and what that takes would stand in every time.

#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <cuda_runtime.h>

#include "executor/cuda_library/entry/product_lane.h"
#include "executor/machines/cuda/cuda_nccl_port.h"
#include "executor/measure/device/measure_nccl.h"
#include "executor/transport/nccl/nccl_communicator.h"

namespace plumb { inline namespace executor { namespace cuda {

class NcclGpus : public NcclDevices {
 public:
  /// Opens the first `ranks` GPUs (0: all of them), with buffers of `most_bytes` bytes. Throws RunError if there are
  /// fewer, or if NCCL fails.
  NcclGpus(int ranks, std::int64_t most_bytes);

  int ranks() const override { return static_cast<int>(gpus_.size()); }
  Seconds run(const NcclRound& round, int times) override;
  std::int64_t wrong_values(const NcclRound& round) override;
  std::vector<OverlapTimes> overlap(const OverlapWork& work) override;

 private:
  struct Gpu {
    Gpu() = default;
    ~Gpu();
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    int device = 0;
    std::unique_ptr<NcclCommunicatorHandle> communicator;
    cudaStream_t stream = nullptr;
    float* from = nullptr;
    float* to = nullptr;
    std::unique_ptr<ProductLane> products;  // those of the last overlap()
  };

  /// Runs `work` on a thread for each GPU; all threads first arrive at `together` if it is given. Throws the first
  /// exception of any thread, which also ends the waits of the others.
  void on_all(const std::function<void(int rank, Gpu& gpu)>& work, std::barrier<>* together = nullptr);
  void launch(int rank, const Gpu& gpu, const NcclRound& round) const;
  void wait(const Gpu& gpu) const;
  void stop_if_failed() const;
  std::int64_t wrong_here(int rank, const Gpu& gpu, const NcclRound& round) const;

  CudaNcclPort port_;
  std::atomic<bool> has_failed_ = false;
  std::vector<std::unique_ptr<Gpu>> gpus_;
};

}}}  // namespace plumb::executor::cuda
