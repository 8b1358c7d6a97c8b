#include "executor/nccl/nccl_order.h"

#include <fmt/format.h>

#include "executor/training/fingerprint.h"

namespace plumb { inline namespace executor {

std::string_view nccl_kind_name(NcclKind kind) {
  switch (kind) {
    case NcclKind::kCompute:
      return "compute";
    case NcclKind::kSend:
      return "send";
    case NcclKind::kReceive:
      return "receive";
    case NcclKind::kBroadcast:
      return "broadcast";
    case NcclKind::kReduce:
      return "reduce";
    case NcclKind::kAllGather:
      return "all_gather";
    case NcclKind::kReduceScatter:
      return "reduce_scatter";
    case NcclKind::kAllReduce:
      return "all_reduce";
  }
  return "";
}

std::int64_t nccl_call_count(const NcclOrder& order) {
  std::int64_t calls = 0;
  for (const NcclRank& rank : order.ranks)
    for (const NcclCall& call : rank.calls) calls += call.kind == NcclKind::kCompute ? 0 : 1;
  return calls;
}

std::uint64_t fingerprint(const NcclOrder& order) {
  Fingerprint print;
  for (const NcclCommunicator& communicator : order.communicators) {
    print.add(std::string_view(communicator.name));
    for (const int rank : communicator.ranks) print.add(rank);
  }
  for (const NcclRank& rank : order.ranks) {
    print.add(static_cast<std::uint64_t>(rank.calls.size()));
    for (const NcclCall& call : rank.calls) {
      for (const std::int32_t number : {static_cast<std::int32_t>(call.kind), call.communicator, call.peer, call.group})
        print.add(number);
      print.add(call.bytes);
    }
  }
  return print.value();
}

std::string to_text(const NcclCommunicator& communicator, int rank, const NcclCall& call) {
  const bool has_peer = call.peer >= 0 && static_cast<std::size_t>(call.peer) < communicator.ranks.size();
  const int peer = has_peer ? communicator.ranks[static_cast<std::size_t>(call.peer)] : rank;
  std::string text = fmt::format("{} of {} bytes", nccl_kind_name(call.kind), call.bytes);
  if (call.kind == NcclKind::kSend || call.kind == NcclKind::kReduce) text += fmt::format(" to rank {}", peer);
  if (call.kind == NcclKind::kReceive || call.kind == NcclKind::kBroadcast) text += fmt::format(" from rank {}", peer);
  if (communicator.ranks.size() <= 4)
    return fmt::format("{} ({}, ranks {})", text, communicator.name, fmt::join(communicator.ranks, ", "));
  return fmt::format("{} ({}, {} ranks from {} on)", text, communicator.name, communicator.ranks.size(),
                     communicator.ranks.front());
}

std::string to_text(const NcclOrder& order, int rank, const NcclCall& call) {
  if (call.kind == NcclKind::kCompute) return "compute";
  return to_text(order.communicators[static_cast<std::size_t>(call.communicator)], rank, call);
}

}}  // namespace plumb::executor
