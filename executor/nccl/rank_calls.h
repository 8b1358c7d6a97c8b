#pragma once
// Writes down the calls of one rank: what it computes, what it exchanges in its groups, what waits for what.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/nccl/layer_exchanges.h"
#include "executor/nccl/nccl_order.h"

namespace plumb { inline namespace executor {

/// Communicators by what they are for and who is in them, numbered as they come up.
class NcclCommunicators {
 public:
  std::int32_t number_of(const std::string& name, const std::vector<int>& ranks);
  std::vector<NcclCommunicator> take() { return std::move(list_); }
  const std::vector<int>& ranks(std::int32_t number) const { return list_[static_cast<std::size_t>(number)].ranks; }

 private:
  std::map<std::pair<std::string, std::vector<int>>, std::int32_t> numbers_;
  std::vector<NcclCommunicator> list_;
};

/// A communicator as one member sees it; `number` kNone where the rank is alone.
struct NcclSeat {
  std::int32_t number = NcclCall::kNone;
  std::int32_t member = 0;
  std::int32_t members = 1;
};

class RankCalls {
 public:
  /// What follows belongs to the action at this place of the list.
  void begin_action(std::int32_t position) { action_ = position; }

  /// A piece of compute behind all that is awaited.
  void compute();

  /// The next piece of compute waits for these calls.
  void await(const std::vector<std::int32_t>& calls) { pending_.insert(pending_.end(), calls.begin(), calls.end()); }

  /// An exchange that compute waits for, behind a piece of it.
  void exchange(const NcclSeat& seat, const LayerExchange& exchange);

  /// One that goes on beside: behind the compute so far; adds its calls to `started`.
  void start(const NcclSeat& seat, const LayerExchange& exchange, std::vector<std::int32_t>& started);

  /// A message, behind compute call `behind`. Returns the call.
  std::int32_t message(NcclKind kind, std::int32_t communicator, std::int64_t bytes, std::int32_t group,
                       std::int32_t behind);

  std::int32_t new_group() { return groups_++; }
  std::int32_t last_compute() const { return last_compute_; }
  NcclRank take() { return std::move(rank_); }

 private:
  std::int32_t add(NcclCall call, std::vector<std::int32_t> waits);

  NcclRank rank_;
  std::vector<std::int32_t> pending_, later_;
  std::int32_t action_ = 0, groups_ = 0;
  std::int32_t last_compute_ = NcclCall::kNone;
};

}}  // namespace plumb::executor
