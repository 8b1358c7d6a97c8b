#pragma once
// Carries out one rank's list of NCCL calls (executor/nccl/nccl_order.h): its communicators, a stream for each, events
// where calls of different streams wait for each other.
//
//   NcclTransport transport(order, rank, ids, {.timeout = Seconds{60}});
//   transport.run(enqueue_compute, place_of);    // enqueues a replay, and waits for its end
//
// The ranks compare fingerprint(order) before they make a transport; ids are moved by MPI or within the process.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <cuda_runtime.h>

#include "executor/cuda/nccl_communicator.h"
#include "executor/nccl/nccl_order.h"

namespace plumb::cuda {

/// Where a call's bytes are on this device.
struct NcclPlaces {
  const void* from = nullptr;
  void* to = nullptr;                    ///< of all_gather and reduce_scatter the whole buffer, in place
  std::span<const std::int64_t> bounds;  ///< [members + 1] of its blocks, in elements; empty: equal ones
};

struct NcclTransportOptions {
  Seconds timeout{60};  ///< without anything moving, after which all is aborted
};

class NcclTransport {
 public:
  using EnqueueCompute = std::function<void(const NcclCall& call, cudaStream_t stream)>;
  using PlaceOf = std::function<NcclPlaces(const NcclCall& call)>;

  /// The order outlives it. ids: [communicator] made by its first member.
  NcclTransport(const NcclOrder& order, int rank, const std::vector<ncclUniqueId>& ids,
                const NcclTransportOptions& options);
  ~NcclTransport();
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  /// Makes all calls in their order and waits until they are over, asking all communicators for errors. Throws RunError
  /// with rank, action and peer, after all communicators have been aborted.
  void run(const EnqueueCompute& compute, const PlaceOf& place_of);

 private:
  void enqueue(std::size_t index, const EnqueueCompute& compute, const PlaceOf& place_of);
  void make_call(const NcclCall& call, const NcclPlaces& places);
  void gather_or_scatter(const NcclCall& call, const NcclPlaces& places);
  void wait_for_end();
  void abort();
  cudaStream_t stream_of(const NcclCall& call) { return streams_.at(call.stream); }

  const NcclOrder& order_;
  const int rank_;
  const NcclTransportOptions options_;
  std::map<std::int32_t, std::unique_ptr<NcclCommunicatorHandle>> communicators_;
  std::map<std::int32_t, cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;  // [call] recorded behind it; null where nothing waits for it
};

}  // namespace plumb::cuda
