#include "executor/transport/nccl/nccl_call.h"

#include <fmt/format.h>

namespace plumb { inline namespace executor {

std::string to_text(const CommunicatorRanks& communicator, int rank, const NcclCall& call) {
  const bool has_peer = call.peer >= 0 && static_cast<std::size_t>(call.peer) < communicator.ranks.size();
  const int peer = has_peer ? communicator.ranks[static_cast<std::size_t>(call.peer)] : rank;
  std::string text = fmt::format("{} of {} bytes", collective_name(call.kind), call.bytes);
  if (call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kReduce)
    text += fmt::format(" to rank {}", peer);
  if (call.kind == CollectiveKind::kReceive || call.kind == CollectiveKind::kBroadcast)
    text += fmt::format(" from rank {}", peer);
  if (communicator.ranks.size() <= 4)
    return fmt::format("{} ({}, ranks {})", text, communicator.name, fmt::join(communicator.ranks, ", "));
  return fmt::format("{} ({}, {} ranks from {} on)", text, communicator.name, communicator.ranks.size(),
                     communicator.ranks.front());
}

}}  // namespace plumb::executor
