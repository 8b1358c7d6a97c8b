#include "executor/cuda/nccl_transport.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "executor/cuda/check_cuda.h"
#include "executor/transport/collective.h"
#include "executor/transport/transport.h"

namespace plumb::cuda {
namespace {

constexpr std::int64_t kWordBytes = 4;

}  // namespace

NcclTransport::NcclTransport(const NcclOrder& order, int rank, const std::vector<ncclUniqueId>& ids,
                             const NcclTransportOptions& options)
    : order_(order), rank_(rank), options_(options) {
  const NcclRank& list = order.ranks[static_cast<std::size_t>(rank)];
  // In ascending order on every rank: who waits for a member waits for one that is at a communicator before.
  for (std::size_t number = 0; number < order.communicators.size(); ++number) {
    const NcclCommunicator& communicator = order.communicators[number];
    const auto member = std::ranges::find(communicator.ranks, rank) - communicator.ranks.begin();
    if (member == std::ssize(communicator.ranks)) continue;
    communicators_[static_cast<std::int32_t>(number)] = std::make_unique<NcclCommunicatorHandle>(
        ids[number], static_cast<int>(member), static_cast<int>(communicator.ranks.size()),
        fmt::format("rank {}, communicator {} ({})", rank, number, communicator.name), options.timeout);
  }
  events_.resize(list.calls.size(), nullptr);
  for (const NcclCall& call : list.calls) {
    if (!streams_.contains(call.stream))
      check(cudaStreamCreateWithFlags(&streams_[call.stream], cudaStreamNonBlocking), "a stream");
    for (std::int32_t i = 0; i < call.waits; ++i) {
      cudaEvent_t& event = events_[static_cast<std::size_t>(list.waits[static_cast<std::size_t>(call.first_wait + i)])];
      if (event == nullptr) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
    }
  }
}

NcclTransport::~NcclTransport() {
  abort();
  for (const cudaEvent_t event : events_)
    if (event != nullptr) cudaEventDestroy(event);
  for (const auto& [number, stream] : streams_) cudaStreamDestroy(stream);
}

void NcclTransport::run(const EnqueueCompute& compute, const PlaceOf& place_of) {
  const std::vector<NcclCall>& calls = order_.ranks[static_cast<std::size_t>(rank_)].calls;
  std::size_t current = 0;
  try {
    for (; current < calls.size(); ++current) enqueue(current, compute, place_of);
    current = calls.size() - 1;
    wait_for_end();
  } catch (const RunError& error) {
    abort();
    const NcclCall& call = calls[current];
    throw RunError(
        fmt::format("rank {}, action {}: {}: {}", rank_, call.action, to_text(order_, rank_, call), error.what()));
  }
}

void NcclTransport::enqueue(std::size_t index, const EnqueueCompute& compute, const PlaceOf& place_of) {
  const NcclRank& list = order_.ranks[static_cast<std::size_t>(rank_)];
  const NcclCall& call = list.calls[index];
  const bool in_group = call.group != NcclCall::kNone;
  const bool begins = in_group && (index == 0 || list.calls[index - 1].group != call.group);
  const bool ends = in_group && (index + 1 == list.calls.size() || list.calls[index + 1].group != call.group);
  // All waits of a group stand before it: NCCL enqueues nothing until its end.
  for (std::size_t member = index;
       member < list.calls.size() && (member == index || (begins && list.calls[member].group == call.group));
       ++member) {
    const NcclCall& of = list.calls[member];
    if (in_group && !begins) break;
    for (std::int32_t i = 0; i < of.waits; ++i)
      check(cudaStreamWaitEvent(
                stream_of(of),
                events_[static_cast<std::size_t>(list.waits[static_cast<std::size_t>(of.first_wait + i)])], 0),
            "a wait");
  }
  if (begins) check(nccl().group_start(), "a group");
  if (call.kind == NcclKind::kCompute)
    compute(call, stream_of(call));
  else
    make_call(call, place_of(call));
  if (ends) check(nccl().group_end(), "a group");
  if (in_group && !ends) return;
  std::size_t first = index;
  while (in_group && first > 0 && list.calls[first - 1].group == call.group) --first;
  for (std::size_t member = first; member <= index; ++member) {
    const NcclCall& of = list.calls[member];
    // The launch of a call that does not block may go on behind: its event would be recorded too early.
    if (of.kind != NcclKind::kCompute) communicators_.at(of.communicator)->settle("it is launched");
    if (events_[member] != nullptr) check(cudaEventRecord(events_[member], stream_of(of)), "an event");
  }
}

void NcclTransport::make_call(const NcclCall& call, const NcclPlaces& places) {
  const auto count = static_cast<std::size_t>(call.bytes / kWordBytes);
  ncclComm_t comm = communicators_.at(call.communicator)->get();
  cudaStream_t stream = stream_of(call);
  const auto check_call = [&](ncclResult_t result) { check(result, "NCCL"); };
  switch (call.kind) {
    case NcclKind::kSend:
      return check_call(nccl().send(places.from, count, ncclFloat, call.peer, comm, stream));
    case NcclKind::kReceive:
      return check_call(nccl().receive(places.to, count, ncclFloat, call.peer, comm, stream));
    case NcclKind::kBroadcast:
      return check_call(nccl().broadcast(places.from, places.to, count, ncclFloat, call.peer, comm, stream));
    case NcclKind::kReduce:
      return check_call(nccl().reduce(places.from, places.to, count, ncclFloat, ncclSum, call.peer, comm, stream));
    case NcclKind::kAllReduce:
      return check_call(nccl().all_reduce(places.from, places.to, count, ncclFloat, ncclSum, comm, stream));
    case NcclKind::kAllGather:
    case NcclKind::kReduceScatter:
      return gather_or_scatter(call, places);
    case NcclKind::kCompute:
      return;
  }
}

/// In place over the whole buffer. NCCL's own want equal blocks; others are broadcasts, or reduces, in a group.
void NcclTransport::gather_or_scatter(const NcclCall& call, const NcclPlaces& places) {
  const NcclCommunicator& group = order_.communicators[static_cast<std::size_t>(call.communicator)];
  const auto members = static_cast<std::int64_t>(group.ranks.size()), elements = call.bytes / kWordBytes;
  const bool gathers = call.kind == NcclKind::kAllGather;
  ncclComm_t comm = communicators_.at(call.communicator)->get();
  cudaStream_t stream = stream_of(call);
  auto* buffer = static_cast<float*>(places.to);
  const auto own = std::ranges::find(group.ranks, rank_) - group.ranks.begin();
  const auto bound = [&](std::int64_t member) {
    return places.bounds.empty() ? block_begin(elements, static_cast<int>(members), static_cast<int>(member))
                                 : places.bounds[static_cast<std::size_t>(member)];
  };
  const std::int64_t each = bound(1);
  bool is_equal = true;
  for (std::int64_t member = 0; member < members; ++member) is_equal &= bound(member + 1) - bound(member) == each;
  if (is_equal) {
    const auto count = static_cast<std::size_t>(each);
    check(gathers ? nccl().all_gather(buffer + own * each, buffer, count, ncclFloat, comm, stream)
                  : nccl().reduce_scatter(buffer, buffer + own * each, count, ncclFloat, ncclSum, comm, stream),
          "NCCL");
    return;
  }
  check(nccl().group_start(), "NCCL");
  for (int member = 0; member < static_cast<int>(members); ++member) {
    const std::int64_t first = bound(member);
    const auto count = static_cast<std::size_t>(bound(member + 1) - first);
    check(gathers ? nccl().broadcast(buffer + first, buffer + first, count, ncclFloat, member, comm, stream)
                  : nccl().reduce(buffer + first, buffer + first, count, ncclFloat, ncclSum, member, comm, stream),
          "NCCL");
  }
  check(nccl().group_end(), "NCCL");
}

void NcclTransport::wait_for_end() {
  const auto end = std::chrono::steady_clock::now() + options_.timeout;
  for (const auto& [number, stream] : streams_) {
    while (true) {
      const cudaError_t state = cudaStreamQuery(stream);
      if (state == cudaSuccess) break;
      if (state != cudaErrorNotReady) check(state, "a stream");
      for (const auto& [communicator, handle] : communicators_) handle->poll("its calls run");
      if (std::chrono::steady_clock::now() > end)
        throw RunError(fmt::format("for {:.0f} s its stream has not come to an end", options_.timeout.count()));
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
}

/// Ends what waits for others, on the device too.
void NcclTransport::abort() {
  communicators_.clear();
}

}  // namespace plumb::cuda
