// libnccl.so.2 on the played CUDA, between threads of one process. As NCCL does with communicators that do not block: a
// launch goes on behind its call until somebody has asked, calls match by communicator and order alone, a group is one
// kernel of each communicator and stream, a SEND ends with its RECV, and what waits in vain ends by an abort.

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/simt/number.h"
#include "tests/executor/cuda/played/state.h"

using namespace plumb::played;

namespace {

enum class Kind { kSend, kReceive, kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce };

struct Part {
  Kind kind = Kind::kSend;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  int peer = 0;            // or root
  std::size_t number = 0;  // of a collective, on its communicator
  bool has_come = false, is_over = false;
};

/// Stays when its kernel is gone by an abort.
using PartPtr = std::shared_ptr<Part>;

struct Meeting {
  std::map<int, PartPtr> parts;  // [rank]
};

struct Group {
  int members = 0;
  std::map<int, int> devices;                                // [rank] of those that have come
  std::map<std::pair<int, int>, std::vector<PartPtr>> mail;  // [from, to] in their order
  std::map<std::size_t, Meeting> meetings;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Group> group;
  int rank = 0, device = 0;
  int unsettled = 2;  // questions until it is there, or what was launched is
  bool is_alive = true, is_aborted = false, has_failed = false, is_finalized = false;
  std::size_t collectives = 0;
  std::vector<std::function<void()>> launches;
};

namespace {

constexpr const char* kOpen = "communicators of NCCL";

struct NcclState {
  std::map<std::string, std::shared_ptr<Group>> groups;  // [id]
  std::vector<std::shared_ptr<ncclComm>> communicators;
  int ids = 0;
};

NcclState& own() {
  static NcclState state;
  return state;
}

std::size_t size_of(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : type == ncclFloat ? 4 : 2;
}

float read(const void* values, ncclDataType_t type, std::size_t at) {
  if (type == ncclBfloat16) return plumb::widened(static_cast<const plumb::Bf16*>(values)[at]);
  if (type == ncclHalf) return plumb::widened(static_cast<const plumb::Fp16*>(values)[at]);
  return static_cast<const float*>(values)[at];
}

void write(void* values, ncclDataType_t type, std::size_t at, float value) {
  if (type == ncclBfloat16) return plumb::store(static_cast<plumb::Bf16*>(values)[at], value);
  if (type == ncclHalf) return plumb::store(static_cast<plumb::Fp16*>(values)[at], value);
  static_cast<float*>(values)[at] = value;
}

/// What each rank of a collective gives, read before anything is written: buffers may be in place.
std::vector<std::vector<std::byte>> given(const Meeting& meeting, std::size_t bytes) {
  std::vector<std::vector<std::byte>> all;
  for (const auto& [rank, part] : meeting.parts) {
    const auto* from = static_cast<const std::byte*>(part->from);
    all.emplace_back(from, from + (from == nullptr ? 0 : bytes));
  }
  return all;
}

void sum_into(void* to, const std::vector<std::vector<std::byte>>& all, const Part& part, std::size_t first) {
  for (std::size_t i = 0; i < part.count; ++i) {
    float sum = 0;
    for (const auto& one : all) sum += read(one.data(), part.type, first + i);
    write(to, part.type, i, sum);
  }
}

void perform(Meeting& meeting) {
  const Part& any = *meeting.parts.begin()->second;
  const std::size_t ranks = meeting.parts.size(), bytes = any.count * size_of(any.type);
  const std::vector<std::vector<std::byte>> all =
      given(meeting, any.kind == Kind::kReduceScatter ? bytes * ranks : bytes);
  for (auto& [rank, part] : meeting.parts) {
    auto* to = static_cast<std::byte*>(part->to);
    const auto self = static_cast<std::size_t>(rank);
    if (part->kind == Kind::kAllGather)
      for (std::size_t i = 0; i < ranks; ++i) std::memcpy(to + i * bytes, all[i].data(), bytes);
    else if (part->kind == Kind::kBroadcast)
      std::memcpy(to, all[static_cast<std::size_t>(part->peer)].data(), bytes);
    else if (part->kind == Kind::kAllReduce || (part->kind == Kind::kReduce && part->peer == rank))
      sum_into(to, all, *part, 0);
    else if (part->kind == Kind::kReduceScatter)
      sum_into(to, all, *part, self * part->count);
    part->is_over = true;
  }
}

void collective(State& state, Group& group, int rank, const PartPtr& own_part) {
  const Part& part = *own_part;
  Meeting& meeting = group.meetings[part.number];
  meeting.parts[rank] = own_part;
  if (static_cast<int>(meeting.parts.size()) < group.members) return;
  for (const auto& [other, its] : meeting.parts)
    if (its->kind != part.kind || its->count != part.count || its->type != part.type || its->peer != part.peer) {
      state.fault("NCCL", "ranks of a communicator call different collectives, or of different sizes");
      return;
    }
  perform(meeting);
  group.meetings.erase(part.number);
}

void receive(State& state, Group& group, int rank, Part& part) {
  std::vector<PartPtr>& mail = group.mail[{part.peer, rank}];
  if (mail.empty()) return;
  const PartPtr first = mail.front();
  Part& sent = *first;
  if (sent.count * size_of(sent.type) != part.count * size_of(part.type)) {
    state.fault("NCCL", "a SEND and its RECV are of different sizes");
    return;
  }
  std::memcpy(part.to, sent.from, part.count * size_of(part.type));
  mail.erase(mail.begin());
  sent.is_over = part.is_over = true;
}

/// A communicator's kernel: all of its parts move beside each other.
Work kernel_of(State& state, const std::shared_ptr<ncclComm>& comm, std::vector<Part> given_parts) {
  auto parts = std::make_shared<std::vector<Part>>(std::move(given_parts));
  int& calls = state.nccl_calls[static_cast<std::size_t>(comm->device)];
  const bool is_faulty = comm->device == state.options.faulty_device;
  const bool stalls = is_faulty && calls == state.options.nccl_stalls_at;
  const bool fails = is_faulty && calls == state.options.nccl_fails_at;
  ++calls;
  return [&state, comm, parts, stalls, fails] {
    if (comm->is_aborted) return true;
    if (fails) comm->has_failed = true;
    if (fails || stalls) return false;
    bool is_over = true;
    for (Part& part : *parts) {
      if (!part.is_over && part.kind == Kind::kReceive) receive(state, *comm->group, comm->rank, part);
      if (!part.has_come) {
        const PartPtr shared(parts, &part);
        if (part.kind == Kind::kSend) comm->group->mail[{comm->rank, part.peer}].push_back(shared);
        if (part.kind > Kind::kReceive) collective(state, *comm->group, comm->rank, shared);
        part.has_come = true;
      }
      is_over &= part.is_over;
    }
    return is_over;
  };
}

struct Waiting {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  Part part;
};
thread_local int depth = 0;
thread_local std::vector<Waiting> group;

std::shared_ptr<ncclComm> find(const Call& call, ncclComm_t comm) {
  for (const auto& one : own().communicators)
    if (one.get() == comm && one->is_alive) return one;
  call.fault(cudaErrorInvalidValue, "no such communicator, or one that is gone");
  return nullptr;
}

ncclResult_t launch_all(const Call& call, std::vector<Waiting> waiting) {
  std::map<std::pair<ncclComm_t, cudaStream_t>, std::vector<Part>> kernels;
  for (Waiting& one : waiting) kernels[{one.comm, one.stream}].push_back(one.part);
  for (auto& [where, parts] : kernels) {
    const std::shared_ptr<ncclComm> comm = find(call, where.first);
    if (comm == nullptr) return ncclInvalidArgument;
    for (Part& part : parts)
      if (part.kind > Kind::kReceive) part.number = comm->collectives++;
    comm->unsettled = 2;
    comm->launches.push_back([&state = call.state(), stream = where.second,
                              kernel = kernel_of(call.state(), comm, parts)] { state.enqueue(stream, kernel); });
  }
  return ncclInProgress;
}

ncclResult_t add(const char* function, Part part, ncclComm_t comm, cudaStream_t stream) {
  const Call call(function);
  if (call.error() != cudaSuccess) return ncclUnhandledCudaError;
  const std::shared_ptr<ncclComm> found = find(call, comm);
  if (found == nullptr || call->stream_of(stream, function) != cudaSuccess) return ncclInvalidArgument;
  if (found->unsettled > 0 && depth == 0)
    call.fault(cudaErrorUnknown, "the communicator is still being made or launched");
  if (stream->device != found->device || current_device() != found->device)
    call.fault(cudaErrorInvalidResourceHandle, "communicator, stream and current device are not of one device");
  for (const void* at : {part.from, static_cast<const void*>(part.to)}) {
    int device = -1;
    bool is_known = true;
    if (at != nullptr && (!call->is_within(at, part.count * size_of(part.type), device, is_known) || !is_known ||
                          device != found->device))
      call.fault(cudaErrorInvalidValue, "a buffer that is not of this device, or too small");
  }
  group.push_back({comm, stream, part});
  return depth > 0 ? ncclSuccess : launch_all(call, std::exchange(group, {}));
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = 22800;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Call call("ncclGetUniqueId");
  std::memset(id, 0, sizeof *id);
  const std::string text = "played " + std::to_string(++own().ids);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int members, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const Call call("ncclCommInitRankConfig");
  if (call.error() != cudaSuccess) return ncclUnhandledCudaError;
  if (config == nullptr || config->blocking != 0) call.fault(cudaErrorInvalidValue, "one that blocks is not played");
  std::shared_ptr<Group>& met = own().groups[id.internal];
  if (met == nullptr) met = std::make_shared<Group>();
  met->members = members;
  for (const auto& [other, device] : met->devices)
    if (device == current_device() || other == rank) return ncclInvalidUsage;
  met->devices[rank] = current_device();
  auto& made = own().communicators.emplace_back(std::make_shared<ncclComm>());
  made->group = met;
  made->rank = rank;
  made->device = current_device();
  ++call->open[kOpen];
  *comm = made.get();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Call call("ncclCommGetAsyncError");
  const std::shared_ptr<ncclComm> found = find(call, comm);
  if (found == nullptr) return ncclInvalidArgument;
  call->step();
  *state = found->has_failed ? ncclRemoteError : ncclInProgress;
  if (found->has_failed || static_cast<int>(found->group->devices.size()) < found->group->members) return ncclSuccess;
  if (found->unsettled > 0 && --found->unsettled > 0) return ncclSuccess;
  for (const auto& launch : std::exchange(found->launches, {})) launch();
  *state = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Call call("ncclCommFinalize");
  const std::shared_ptr<ncclComm> found = find(call, comm);
  if (found == nullptr) return ncclInvalidArgument;
  found->unsettled = 2;
  found->is_finalized = true;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Call call("ncclCommDestroy");
  const std::shared_ptr<ncclComm> found = find(call, comm);
  if (found == nullptr) return ncclInvalidArgument;
  if (!found->is_finalized || found->unsettled > 0) call.fault(cudaErrorUnknown, "it was not finalized, or still is");
  found->is_alive = false;
  --call->open[kOpen];
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Call call("ncclCommAbort");
  const std::shared_ptr<ncclComm> found = find(call, comm);
  if (found == nullptr) return ncclInvalidArgument;
  found->is_alive = false;
  found->is_aborted = true;
  found->launches.clear();
  --call->open[kOpen];
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  const Call call("ncclGroupEnd");
  return launch_all(call, std::exchange(group, {}));
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add("ncclSend", {.kind = Kind::kSend, .from = from, .count = count, .type = type, .peer = peer}, comm, stream);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add("ncclRecv", {.kind = Kind::kReceive, .to = to, .count = count, .type = type, .peer = peer}, comm, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return add("ncclBroadcast", {Kind::kBroadcast, from, to, count, type, root}, comm, stream);
}
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return add("ncclReduce", {Kind::kReduce, from, to, count, type, root}, comm, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add("ncclAllGather", {.kind = Kind::kAllGather, .from = from, .to = to, .count = count, .type = type}, comm,
             stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t stream) {
  return add("ncclReduceScatter", {.kind = Kind::kReduceScatter, .from = from, .to = to, .count = count, .type = type},
             comm, stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream) {
  return add("ncclAllReduce", {.kind = Kind::kAllReduce, .from = from, .to = to, .count = count, .type = type}, comm,
             stream);
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "invalid usage";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
