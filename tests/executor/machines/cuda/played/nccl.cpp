// libnccl.so.2 on the played CUDA. It behaves as NCCL does. A call on a communicator that does not block returns before
// its launch, which goes on until it is asked about, and another waits until all members have called; calls match by communicator and order alone; a group is one kernel
// for each communicator and stream; a SEND ends with its RECV; and a call that waits in vain ends by an abort.

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/executor/machines/cuda/played/nccl_communicator.h"

using namespace plumb;
using namespace plumb::test::played;

namespace {

constexpr const char* kOpenCommunicators = "communicators of NCCL";

struct NcclState {
  std::vector<CommunicatorPtr> communicators;
  std::string last_error;
};

NcclState& own() {
  static NcclState state;
  return state;
}

NcclElement element_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat:
      return NcclElement::kFp32;
    case ncclHalf:
      return NcclElement::kFp16;
    case ncclBfloat16:
      return NcclElement::kBf16;
    default:
      return NcclElement::kByte;
  }
}

struct Waiting {
  CommunicatorPtr comm;
  cudaStream_t stream = nullptr;
  NcclPart part;
};
thread_local int group_depth = 0;
thread_local std::vector<Waiting> group;
thread_local std::vector<CommunicatorPtr> group_aborts;

CommunicatorPtr find(const Call& call, ncclComm_t comm) {
  for (const auto& one : own().communicators)
    if (one.get() == comm && one->is_alive) return one;
  call.fault(cudaErrorInvalidValue, "no such communicator, or one that is gone");
  return nullptr;
}

/// Waits as a call of NCCL does that blocks.
ncclResult_t wait_for(Call& call, int device, const std::function<bool()>& is_over) {
  return call->wait(call.lock(), device, is_over, call.function()) == cudaSuccess ? ncclSuccess
                                                                                  : ncclUnhandledCudaError;
}

/// Puts the kernels of settled launches onto their streams.
void launch_settled(ncclComm& comm) {
  for (const auto& launch : std::exchange(comm.launches, {})) launch();
}

ncclResult_t launch_all(Call& call, const std::vector<Waiting>& waiting) {
  std::map<std::pair<CommunicatorPtr, cudaStream_t>, std::vector<NcclPart>> kernels;
  std::set<CommunicatorPtr> all;
  for (const Waiting& one : waiting) {
    kernels[{one.comm, one.stream}].push_back(one.part);
    all.insert(one.comm);
  }
  for (const auto& [where, parts] : kernels)
    where.first->launches.push_back(
        [&state = call.state(), stream = where.second, kernel = kernel_of(call.state(), where.first, parts)] {
          state.put(stream, {.work = kernel, .graph = nullptr});
        });
  for (const CommunicatorPtr& comm : all) {
    comm->unsettled = 2;
    ++comm->calls;
    comm->lines->note_call();
  }
  for (const CommunicatorPtr& comm : all) {
    if (!comm->is_blocking) return ncclInProgress;
    comm->unsettled = 0;
    if (const ncclResult_t waited = wait_for(call, comm->device, [&] { return have_called(call.state(), *comm); });
        waited != ncclSuccess)
      return waited;
    launch_settled(*comm);
  }
  return ncclSuccess;
}

/// Ends the communicators' kernels, and then waits for the device, as the release of their memory does
/// (github.com/NVIDIA/nccl/issues/1013).
ncclResult_t abort_all(Call& call, const std::vector<CommunicatorPtr>& comms) {
  for (const CommunicatorPtr& comm : comms) {
    comm->is_alive = false;
    comm->is_aborted = true;
    comm->launches.clear();
    comm->lines->give_up();
    --call->open[kOpenCommunicators];
  }
  ncclResult_t result = ncclSuccess;
  for (const CommunicatorPtr& comm : comms)
    if (wait_for(call, comm->device, [&] { return call->is_idle(comm->device); }) != ncclSuccess)
      result = ncclUnhandledCudaError;
  for (const CommunicatorPtr& comm : comms) comm->lines.reset();
  return result;
}

ncclResult_t add(const char* function, CollectiveKind kind, const void* from, void* to, std::size_t count,
                 ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  Call call(function);
  if (call.error() != cudaSuccess) return ncclUnhandledCudaError;
  const CommunicatorPtr found = find(call, comm);
  if (found == nullptr || call->stream_of(stream, function) != cudaSuccess) return ncclInvalidArgument;
  if (found->unsettled > 0 && group_depth == 0)
    call.fault(cudaErrorUnknown, "the communicator is still being made or launched");
  if (stream->device != found->device || current_device() != found->device)
    call.fault(cudaErrorInvalidResourceHandle, "communicator, stream and current device are not of one device");
  const NcclPort::Call made{
      .from = from, .to = to, .elements = static_cast<std::int64_t>(count), .element = element_of(type), .peer = peer};
  for (const void* at : {from, static_cast<const void*>(to)}) {
    int device = -1;
    bool is_known = true;
    if (at != nullptr &&
        (!call->is_within(at, count * static_cast<std::size_t>(bytes_of(made.element)), device, is_known) ||
         !is_known || device != found->device))
      call.fault(cudaErrorInvalidValue, "a buffer that is not of this device, or too small");
  }
  group.push_back({.comm = found, .stream = stream, .part = {.kind = kind, .call = made}});
  return group_depth > 0 ? ncclSuccess : launch_all(call, std::exchange(group, {}));
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = 22800;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Call call("ncclGetUniqueId");
  std::memset(id, 0, sizeof *id);
  const std::string path = test::HostLines::make_file();
  std::memcpy(id->internal, path.data(), path.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int members, ncclUniqueId id, int rank, ncclConfig_t* config) {
  Call call("ncclCommInitRankConfig");
  if (call.error() != cudaSuccess) return ncclUnhandledCudaError;
  if (rank < 0 || rank >= members || members > test::kMostHostMembers) return ncclInvalidArgument;
  auto made = std::make_shared<ncclComm>();
  made->device = current_device();
  made->is_blocking = config->blocking != 0;
  made->sms = config->maxCTAs == NCCL_CONFIG_UNDEF_INT ? call->options.nccl_sms : config->maxCTAs;
  try {
    made->lines =
        std::make_unique<test::HostLines>(id.internal, rank, members, place_of_device(call.state(), current_device()));
  } catch (const RunError&) {  // the rank that made the id is gone
    return ncclRemoteError;
  }
  own().communicators.push_back(made);
  ++call->open[kOpenCommunicators];
  *comm = made.get();
  if (!made->is_blocking) return ncclInProgress;
  made->unsettled = 0;
  const ncclResult_t waited = wait_for(call, made->device, [&] { return have_met(*made); });
  if (made->failed == ncclInvalidUsage) own().last_error = duplicate_gpu(*made);
  return waited == ncclSuccess ? made->failed : waited;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Call call("ncclCommGetAsyncError");
  const CommunicatorPtr found = find(call, comm);
  if (found == nullptr) return ncclInvalidArgument;
  call->step_on();
  *state = ncclInProgress;
  if (!have_met(*found)) return ncclSuccess;
  *state = found->failed;
  if (found->failed == ncclInvalidUsage) own().last_error = duplicate_gpu(*found);
  if (found->failed != ncclSuccess) return ncclSuccess;
  if (found->is_finalized && found->over < found->launched) *state = ncclInProgress;
  if (!have_called(call.state(), *found) || (found->unsettled > 0 && --found->unsettled > 0)) *state = ncclInProgress;
  if (*state == ncclSuccess) launch_settled(*found);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Call call("ncclCommFinalize");
  const CommunicatorPtr found = find(call, comm);
  if (found == nullptr) return ncclInvalidArgument;
  found->unsettled = 2;
  found->is_finalized = true;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Call call("ncclCommDestroy");
  const CommunicatorPtr found = find(call, comm);
  if (found == nullptr) return ncclInvalidArgument;
  if (!found->is_finalized || found->unsettled > 0) call.fault(cudaErrorUnknown, "it was not finalized, or still is");
  found->is_alive = false;
  found->lines.reset();
  --call->open[kOpenCommunicators];
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Call call("ncclCommAbort");
  const CommunicatorPtr found = find(call, comm);
  if (found == nullptr) return ncclInvalidArgument;
  if (group_depth == 0) return abort_all(call, {found});
  group_aborts.push_back(found);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--group_depth > 0) return ncclSuccess;
  Call call("ncclGroupEnd");
  if (!group_aborts.empty()) return abort_all(call, std::exchange(group_aborts, {}));
  return launch_all(call, std::exchange(group, {}));
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add("ncclSend", CollectiveKind::kSend, from, nullptr, count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add("ncclRecv", CollectiveKind::kReceive, nullptr, to, count, type, peer, comm, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return add("ncclBroadcast", CollectiveKind::kBroadcast, from, to, count, type, root, comm, stream);
}
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return add("ncclReduce", CollectiveKind::kReduce, from, to, count, type, root, comm, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add("ncclAllGather", CollectiveKind::kAllGather, from, to, count, type, 0, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t stream) {
  return add("ncclReduceScatter", CollectiveKind::kReduceScatter, from, to, count, type, 0, comm, stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream) {
  return add("ncclAllReduce", CollectiveKind::kAllReduce, from, to, count, type, 0, comm, stream);
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    default:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
  }
}
const char* ncclGetLastError(ncclComm_t) {
  const Call call("ncclGetLastError");
  return own().last_error.c_str();
}
