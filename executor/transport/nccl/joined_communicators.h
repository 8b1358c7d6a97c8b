#pragma once
// The communicators of a rank.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "executor/transport/nccl/nccl_call.h"
#include "executor/transport/nccl/nccl_communicator.h"
#include "executor/transport/nccl/nccl_port.h"

namespace plumb { inline namespace executor {

/// Returns the bytes that NCCL takes on the device of `rank` for these communicators, by an estimate. A rank has a buffer
/// for each block, neighbour and protocol: 4 MiB of Simple (NCCL_BUFFSIZE), 4.7 of LL128 and 0.5 of LL (NCCL 2.28,
/// src/init.cc, computeBuffSizes). A channel has one neighbour, and a group's ring two. NCCL_MAX_CTAS says how many blocks there are.
std::int64_t nccl_buffer_bytes(const std::vector<CommunicatorRanks>& communicators, int rank);

class JoinedCommunicators {
 public:
  /// The port outlives it.
  explicit JoinedCommunicators(NcclPort& port) : port_(port) {}
  ~JoinedCommunicators() { abort(); }
  JoinedCommunicators(const JoinedCommunicators&) = delete;
  JoinedCommunicators& operator=(const JoinedCommunicators&) = delete;

  /// Makes the communicators that `rank` is a member of, in ascending order on every rank, so that no ranks wait for
  /// each other in a circle. ids: [communicator]. Throws RunError with rank and communicator, and if the device has no
  /// room for NCCL's buffers.
  void join(const std::vector<CommunicatorRanks>& communicators, int rank, const std::vector<NcclId>& ids,
            const NcclPatience& patience);

  /// Returns the communicator of that number in DeviceGroups::communicators.
  const NcclCommunicatorHandle& at(std::int32_t number) const { return *joined_.at(number); }

  /// Throws RunError if something that was launched on any of them has failed.
  void poll() const;

  /// Flushes and destroys them after the last call, on all ranks.
  void finish();

  /// Ends their calls and destroys them, all at once.
  void abort() noexcept;

 private:
  NcclPort& port_;
  std::map<std::int32_t, std::unique_ptr<NcclCommunicatorHandle>> joined_;
};

}}  // namespace plumb::executor
