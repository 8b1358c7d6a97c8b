#include "tests/executor/transport/nccl/order/nccl_order.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace plumb::test {

std::string text_of_call(const NcclOrder& order, std::int32_t rank, std::int32_t call) {
  const OrderedCall& of = order.ranks[static_cast<std::size_t>(rank)].calls[static_cast<std::size_t>(call)];
  const std::string action = of.action.empty() ? "" : fmt::format(" ({})", of.action);
  std::string made = "kernels";
  if (of.kind)
    made = plumb::to_text(order.communicators[static_cast<std::size_t>(of.communicator)], rank,
                          {.kind = *of.kind, .peer = of.peer, .bytes = of.bytes});
  return fmt::format("rank {}, call {}{}: {}", rank, call, action, made);
}

int most_kernels_of_a_group(const NcclOrder& order) {
  std::size_t most = 1;
  for (const RankOrder& rank : order.ranks) {
    std::set<std::int32_t> communicators;
    std::int32_t group = OrderedCall::kNone;
    for (const OrderedCall& call : rank.calls) {
      if (call.group == OrderedCall::kNone || call.group != group) communicators.clear();
      group = call.group;
      if (call.kind) communicators.insert(call.communicator);
      most = std::max(most, communicators.size());
    }
  }
  return static_cast<int>(most);
}

}  // namespace plumb::test
