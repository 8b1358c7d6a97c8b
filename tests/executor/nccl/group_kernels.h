#pragma once
// How much room an order needs at the least.

#include <algorithm>
#include <set>

#include "executor/nccl/nccl_order.h"

namespace plumb::test {

/// Kernels that start together, at the most: those of a group, one for each of its communicators.
inline int most_kernels_of_a_group(const NcclOrder& order) {
  std::size_t most = 1;
  for (const NcclRank& rank : order.ranks) {
    std::set<std::int32_t> communicators;
    std::int32_t group = NcclCall::kNone;
    for (const NcclCall& call : rank.calls) {
      if (call.group == NcclCall::kNone || call.group != group) communicators.clear();
      group = call.group;
      if (call.kind != NcclKind::kCompute) communicators.insert(call.communicator);
      most = std::max(most, communicators.size());
    }
  }
  return static_cast<int>(most);
}

}  // namespace plumb::test
