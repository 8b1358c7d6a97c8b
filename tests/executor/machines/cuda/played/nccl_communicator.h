#pragma once
// A communicator of the played NCCL, and the kernels on it, between threads and processes of one host alike
// (host_lines.h). Its kernels run in the order of their launches, as in NCCL, whatever their streams.

#include <nccl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/transport/nccl/nccl_call.h"
#include "executor/transport/nccl/nccl_port.h"
#include "tests/executor/machines/cuda/played/state.h"
#include "tests/executor/transport/nccl/host_lines.h"

struct ncclComm {
  std::unique_ptr<plumb::test::HostLines> lines;
  int device = 0;
  int sms = 0;  // that a kernel holds while it runs
  bool is_blocking = false;
  int unsettled = 2;  // number of questions until the communicator, or a launch, is settled
  bool is_alive = true, is_aborted = false, is_finalized = false;
  bool has_met = false;
  bool is_stuck = false;  // true: its members do not agree, and wait for ever
  ncclResult_t failed = ncclSuccess;
  std::vector<int> elsewhere;            // members on other hosts
  std::uint64_t launched = 0, over = 0;  // number of kernels
  std::uint64_t calls = 0;               // groups that were launched
  std::vector<std::function<void()>> launches;
};

namespace plumb::test::played {

using CommunicatorPtr = std::shared_ptr<ncclComm>;

/// Returns the GPU, and the host by which NCCL tells it from others: NCCL_HOSTID, as it was when this process first
/// asked.
std::string place_of_device(const State& state, int device);

/// True if the kernels of the last group may be launched: where connections are made, all members have called by then.
/// Fails if one on another host never will.
bool have_called(const State& state, ncclComm& comm);

/// True if all members are there. Fails if two are on one GPU of one host.
bool have_met(ncclComm& comm);

/// Returns the text of ncclGetLastError() for that fault.
std::string duplicate_gpu(const ncclComm& comm);

struct NcclPart {
  CollectiveKind kind = CollectiveKind::kSend;
  NcclPort::Call call;
};

/// Makes one kernel, whose parts all move beside each other. If a member on another host (by its NCCL_HOSTID) dies or
/// aborts while a kernel runs, that is an error of the communicator. NCCL does not notice it in a member on this host,
/// which it reaches through memory.
Work kernel_of(State& state, const CommunicatorPtr& comm, std::vector<NcclPart> parts);

}  // namespace plumb::test::played
