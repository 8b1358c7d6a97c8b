#pragma once
// Writes down the calls of one rank: its pieces of compute, its exchanges in groups, its messages, and their waits.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/nccl/layer_exchanges.h"
#include "executor/nccl/nccl_order.h"

namespace plumb { inline namespace executor {

/// Communicators by their purpose and members, numbered in the order of their first use.
class NcclCommunicators {
 public:
  std::int32_t number_of(const std::string& name, const std::vector<int>& ranks);
  std::vector<NcclCommunicator> take() { return std::move(list_); }
  const std::vector<int>& ranks(std::int32_t number) const { return list_[static_cast<std::size_t>(number)].ranks; }

 private:
  std::map<std::pair<std::string, std::vector<int>>, std::int32_t> numbers_;
  std::vector<NcclCommunicator> list_;
};

/// A communicator from the view of one member; `number` is kNone if the rank is alone.
struct NcclSeat {
  std::int32_t number = NcclCall::kNone;
  std::int32_t member = 0;
  std::int32_t members = 1;
};

class RankCalls {
 public:
  /// Says that the following calls belong to the action at this place of the list.
  void begin_action(std::int32_t position) { action_ = position; }

  /// Adds a piece of compute, which waits for all calls that are awaited.
  void compute();

  /// Makes the next piece of compute wait for these calls.
  void await(const std::vector<std::int32_t>& calls) { pending_.insert(pending_.end(), calls.begin(), calls.end()); }

  /// Adds an exchange behind a piece of compute; compute waits for it.
  void exchange(const NcclSeat& seat, const LayerExchange& exchange);

  /// Adds an exchange that runs beside compute, behind the compute so far. Appends its calls to `started`.
  void start(const NcclSeat& seat, const LayerExchange& exchange, std::vector<std::int32_t>& started);

  /// Adds a message, behind compute call `behind`. Returns the call.
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
