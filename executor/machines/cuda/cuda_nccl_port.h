#pragma once
// The GPU's implementation of the port to NCCL (executor/transport/nccl/nccl_port.h), by libnccl.so.2 and CUDA's streams and
// events.

#include <cuda_runtime.h>

#include "executor/machines/cuda/nccl_functions.h"
#include "executor/transport/nccl/nccl_port.h"

namespace plumb { inline namespace executor { namespace cuda {

class CudaNcclPort : public NcclPort {
 public:
  /// The caller makes the device current on the thread that makes the calls. Throws RunError if there is no NCCL.
  CudaNcclPort() { nccl(); }

  NcclId make_id() override;
  Communicator begin_communicator(const NcclId& id, int member, int members, const NcclConfig& config) override;
  bool is_settled(Communicator communicator) override;
  void finalize(Communicator communicator) override;
  void destroy(Communicator communicator) override;
  void abort(std::span<const Communicator> communicators) noexcept override;
  std::int64_t free_bytes() override;
  void group_start() override;
  void group_end() override;
  void send(const Call& call) override;
  void receive(const Call& call) override;
  void broadcast(const Call& call) override;
  void reduce(const Call& call) override;
  void all_gather(const Call& call) override;
  void reduce_scatter(const Call& call) override;
  void all_reduce(const Call& call) override;
  Stream make_stream() override;
  void destroy_stream(Stream stream) noexcept override;
  Event make_event() override;
  void destroy_event(Event event) noexcept override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  bool has_ended(Event event) override;
};

}}}  // namespace plumb::executor::cuda
