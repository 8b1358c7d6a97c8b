#pragma once
// A communicator of the played NCCL, between threads and processes of one host alike (host_lines.h), and what runs on
// it. Its kernels run in the order of their launches, as NCCL has it, whatever their streams.

#include <nccl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/nccl/nccl_call.h"
#include "executor/nccl/nccl_port.h"
#include "tests/executor/cuda/played/state.h"
#include "tests/executor/nccl/host_lines.h"

struct ncclComm {
  std::unique_ptr<plumb::test::HostLines> lines;
  int device = 0;
  int unsettled = 2;  // questions until it is there, or what was launched is
  bool is_alive = true, is_aborted = false, is_finalized = false;
  bool has_met = false;
  bool is_stuck = false;  // its members do not agree, and wait for ever
  ncclResult_t failed = ncclSuccess;
  std::vector<int> elsewhere;            // members on other hosts
  std::uint64_t launched = 0, over = 0;  // kernels
  std::vector<std::function<void()>> launches;
};

namespace plumb::test::played {

using CommunicatorPtr = std::shared_ptr<ncclComm>;

/// The GPU and the host by which NCCL tells it from others: NCCL_HOSTID, as it was when this process first asked.
std::string place_of_device(const State& state, int device);

/// Whether all members are there. Fails if two are on one GPU of one host.
bool have_met(ncclComm& comm);

/// What ncclGetLastError() tells of that.
std::string duplicate_gpu(const ncclComm& comm);

struct NcclPart {
  NcclKind kind = NcclKind::kSend;
  NcclPort::Call call;
};

/// One kernel: all of its parts move beside each other. A member on another host (by its NCCL_HOSTID) that dies or
/// aborts is an error of the communicator while a kernel runs; of one on this host, over whose memory it goes, NCCL
/// learns nothing.
Work kernel_of(State& state, const CommunicatorPtr& comm, std::vector<NcclPart> parts);

}  // namespace plumb::test::played
