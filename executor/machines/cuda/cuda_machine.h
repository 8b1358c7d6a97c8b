#pragma once
// A GPU as the device executor sees it (executor/machines/device_machine.h): streams of each rank, an event at both ends
// of every call, an NVTX range around what the host enqueues for the call.
//
// With --cuda-graph the first replay is enqueued call by call, the second is captured, and from then on the graph is
// launched.

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/machines/cuda/green_contexts.h"
#include "executor/machines/cuda/matrix_products.h"
#include "executor/machines/cuda/run_ahead.h"
#include "executor/machines/cuda_sharing.h"
#include "executor/machines/device_machine.h"
#include "executor/transport/nccl/call_watch.h"
#include "executor/transport/nccl/linked_calls.h"

namespace plumb { inline namespace executor { namespace cuda {

class CudaMachine : public DeviceMachine {
 public:
  /// Tensors are stored in `half`, or in fp32 if there is none. A machine that is one rank of several has `links`,
  /// which outlive it. Throws RunError if the device does not answer, and SpecError if such a rank is to run as a
  /// graph.
  CudaMachine(int device, std::optional<HalfFormat> half, CudaSharing how = {}, LinkedCalls* links = nullptr);
  ~CudaMachine() override;
  CudaMachine(const CudaMachine&) = delete;
  CudaMachine& operator=(const CudaMachine&) = delete;

  /// Returns how the ranks share the SMs, e.g. "green contexts of 64 and 64 SMs". It must be called after prepare().
  std::string sharing() const;

  std::int64_t free_bytes() const override;
  std::int64_t own_bytes(int ranks) const override;
  std::byte* allocate(std::int64_t bytes) override;
  std::byte* allocate_on_host(std::int64_t bytes) override;
  void upload(void* to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const void* from) override;
  void prepare(std::span<const DeviceLane> lanes, std::size_t calls) override;
  bool keeps_replay() const override { return launched_ != nullptr; }
  void begin_call(std::size_t index, int rank, DeviceStream stream, const char* name) override;
  void wait_for(std::size_t earlier) override;
  DeviceKernels& kernels() override;
  void end_call() override;
  std::string text_of_fault(const std::string& reason) const override;
  void join(const DeviceGroups& groups) override;
  void exchange(const DeviceExchange& exchange) override;
  void begin_group() override;
  void end_group() override;
  std::vector<CallTimes> finish() override;

 private:
  struct Lane {
    cudaStream_t stream = nullptr;  // null: the lane has no calls
    std::unique_ptr<DeviceKernels> kernels;
    RunAhead ahead;
    cudaEvent_t joins = nullptr;  // the end of its last call in a capture
    bool in_capture = false;
  };
  struct CallEvents {
    cudaEvent_t start = nullptr, end = nullptr;  // the call's moments, which are timed
    cudaEvent_t done = nullptr;                  // its end, as a captured graph waits for it
  };

  /// Works as check(), and adds the calls under way to the text of the error.
  void require(cudaError_t error, const char* what) const;
  static std::size_t lane_of(int rank, DeviceStream stream) {
    return static_cast<std::size_t>(rank) * kDeviceStreamCount + static_cast<std::size_t>(stream);
  }
  void settle(DeviceLane of, bool in_parts);
  void start_call();
  void make_room(int launches);
  void wait_until(const std::function<bool()>& is_over);
  void record(cudaEvent_t moment);
  void record_end(std::size_t call);
  void begin_capture();
  void join_capture();
  void end_capture();
  bool has_ended(std::size_t call) const;

  const int device_;
  const std::optional<HalfFormat> half_;
  const CudaSharing how_;
  LinkedCalls* const links_;
  int all_multiprocessors_ = 0;
  std::unique_ptr<GreenContexts> contexts_;                // null: streams on all SMs
  std::vector<std::unique_ptr<MatrixProducts>> products_;  // [rank]
  std::vector<void*> memory_, host_memory_;
  std::vector<Lane> lanes_;  // [rank, DeviceStream]
  std::vector<CallEvents> events_;
  std::size_t call_ = 0;
  std::size_t calls_ = 0;  // calls of the replay so far, or of the whole replay where it is a graph
  std::size_t ends_ = 0;   // calls of the replay whose ends are recorded
  std::size_t lane_ = 0;
  bool has_started_ = false;
  bool in_group_ = false;
  // Calls and lanes whose ends are recorded when the group is launched.
  std::vector<std::pair<std::size_t, std::size_t>> ends_of_group_;
  bool has_range_ = false;  // true inside an NVTX range
  CallWatch watch_;         // follows the calls where there are no links

  int replays_ = 0;
  bool captures_ = false;
  cudaStream_t origin_ = nullptr;  // the stream where captures begin and graphs are launched
  cudaEvent_t forks_ = nullptr;
  cudaGraphExec_t launched_ = nullptr;
};

}}}  // namespace plumb::executor::cuda
