#pragma once
// The calls of different ranks that meet: the k-th send to a peer and its k-th receive, the k-th collectives of a
// communicator's members; and the calls that do not fit.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/executor/transport/nccl/order/nccl_order.h"

namespace plumb::test {

struct Participant {
  std::int32_t rank = 0;
  std::int32_t call = 0;
};

struct MatchedCalls {
  std::vector<std::vector<std::int32_t>> match;        ///< [rank][call] of `participants`; -1 for kernels
  std::vector<std::vector<Participant>> participants;  ///< [match]
  std::vector<std::string> findings;                   ///< the first few misfits, a sentence each
};

/// Finds a call outside its communicator; a wait for a call that is not made yet; ends of a pair that differ in bytes
/// or number; members of a group that differ in kind, bytes, root or number; a group number that is used twice.
MatchedCalls match_calls(const NcclOrder& order, std::size_t most_findings);

}  // namespace plumb::test
