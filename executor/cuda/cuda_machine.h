#pragma once
// A GPU as the device executor sees it (executor/device/device_machine.h): streams of each rank, an event at both ends
// of every call.

#include <cuda_runtime.h>

#include <memory>
#include <optional>
#include <vector>

#include "executor/cuda/matrix_products.h"
#include "executor/device/device_machine.h"

namespace plumb::cuda {

class CudaMachine : public DeviceMachine {
 public:
  /// Tensors are stored in `half`, or in fp32. Throws RunError if the device does not answer.
  CudaMachine(int device, std::optional<HalfFormat> half);
  ~CudaMachine() override;
  CudaMachine(const CudaMachine&) = delete;
  CudaMachine& operator=(const CudaMachine&) = delete;

  std::int64_t free_bytes() const override;
  std::byte* allocate(std::int64_t bytes) override;
  std::byte* allocate_on_host(std::int64_t bytes) override;
  void upload(void* to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const void* from) override;
  void prepare(int ranks, std::size_t calls) override;
  void begin_call(std::size_t index, int rank, DeviceStream stream) override;
  void wait_for(std::size_t earlier) override;
  DeviceKernels& kernels() override;
  void end_call() override;
  std::vector<CallTimes> finish() override;

 private:
  struct Lane {
    cudaStream_t stream = nullptr;
    std::unique_ptr<DeviceKernels> kernels;
  };
  struct CallEvents {
    cudaEvent_t start = nullptr, end = nullptr;
  };

  void start_call();

  const std::optional<HalfFormat> half_;
  int multiprocessors_ = 0;
  std::unique_ptr<MatrixProducts> products_;
  std::vector<void*> memory_, host_memory_;
  std::vector<Lane> lanes_;  // [rank, DeviceStream]
  std::vector<CallEvents> events_;
  std::size_t call_ = 0;
  std::size_t calls_ = 0;  // of the replay so far
  std::size_t lane_ = 0;
  bool has_started_ = false;
};

}  // namespace plumb::cuda
