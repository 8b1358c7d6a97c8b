#pragma once
// The groups of ranks that meet in a device's calls, and the channels of messages. They are numbered alike on every
// rank and named as in executor/program/replay_groups.h.

#include <vector>

#include "executor/groups/communicator_numbers.h"
#include "executor/groups/device_exchange.h"
#include "executor/program/replay_plan.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

class DeviceGroupTable {
 public:
  explicit DeviceGroupTable(const ReplayPlan& plan);

  /// Return the rank's seat in each group. `number` is kNone if the rank is alone.
  const CommunicatorSeat& tensor(int rank) const { return tensor_[static_cast<std::size_t>(rank)]; }
  const CommunicatorSeat& context(int rank) const { return context_[static_cast<std::size_t>(rank)]; }
  const CommunicatorSeat& expert(int rank) const { return expert_[static_cast<std::size_t>(rank)]; }
  const CommunicatorSeat& copies(int rank, int stage) const {
    return copies_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage)];
  }
  /// Returns the seat among the copies that hold the same experts.
  const CommunicatorSeat& expert_copies(int rank, int stage) const {
    return expert_copies_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage)];
  }

  /// Returns the seat in the group of all ranks if they agree on something before a step; otherwise that of a rank
  /// alone.
  const CommunicatorSeat& everyone(int rank) const { return everyone_[static_cast<std::size_t>(rank)]; }
  /// `pair` is an index in ReplayPlan::tied.
  const CommunicatorSeat& tied(int rank, std::size_t pair) const { return tied_[static_cast<std::size_t>(rank)][pair]; }

  /// Returns the communicator of messages from one rank to another, where they are members 0 and 1. The first call
  /// registers it, so all ranks must ask in the same order.
  std::int32_t channel(MessageKind kind, int source, int destination);

  std::vector<CommunicatorRanks> take() { return communicators_.take(); }

 private:
  CommunicatorNumbers communicators_;
  std::vector<CommunicatorSeat> tensor_, context_, expert_;            // [rank]
  std::vector<std::vector<CommunicatorSeat>> copies_, expert_copies_;  // [rank][stage]
  std::vector<CommunicatorSeat> everyone_;                             // [rank]
  std::vector<std::vector<CommunicatorSeat>> tied_;                    // [rank][pair]
};

}}  // namespace plumb::executor
