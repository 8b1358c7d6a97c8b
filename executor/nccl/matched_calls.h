#pragma once
// Which calls of which ranks meet: the k-th send to a peer and its k-th receive, the k-th collectives of a
// communicator's members; and what does not fit.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/nccl/nccl_order.h"

namespace plumb { inline namespace executor {

struct Participant {
  std::int32_t rank = 0;
  std::int32_t call = 0;
};

struct MatchedCalls {
  std::vector<std::vector<std::int32_t>> match;        ///< [rank][call] of `participants`; -1 for compute
  std::vector<std::vector<Participant>> participants;  ///< [match]
  std::vector<std::string> findings;                   ///< where they do not fit, a sentence each; the first few
};

/// Findings: a call outside its communicator; a wait for a call that is not made yet; ends of a pair that differ in
/// bytes or number; members of a group that differ in kind, bytes, root or number; a group number that is used twice.
MatchedCalls match_calls(const NcclOrder& order, std::size_t most_findings);

}}  // namespace plumb::executor
