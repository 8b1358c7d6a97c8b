#pragma once
// The groups of ranks that meet in a device's calls, and the channels of messages. They are numbered alike on every
// rank and named as in executor/nccl.

#include <vector>

#include "executor/device_plan/device_exchange.h"
#include "executor/nccl/communicator_numbers.h"
#include "executor/training/training_plan.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

class DeviceGroupTable {
 public:
  explicit DeviceGroupTable(const TrainingPlan& plan);

  /// Return the rank's seat in each group. `number` is NcclCall::kNone if the rank is alone.
  const NcclSeat& tensor(int rank) const { return tensor_[static_cast<std::size_t>(rank)]; }
  const NcclSeat& context(int rank) const { return context_[static_cast<std::size_t>(rank)]; }
  const NcclSeat& expert(int rank) const { return expert_[static_cast<std::size_t>(rank)]; }
  const NcclSeat& copies(int rank, int stage) const {
    return copies_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage)];
  }
  /// Returns the seat among the copies that hold the same experts.
  const NcclSeat& expert_copies(int rank, int stage) const {
    return expert_copies_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage)];
  }

  /// Returns the seat in the group of all ranks if they agree on something before a step; otherwise that of a rank
  /// alone.
  const NcclSeat& everyone(int rank) const { return everyone_[static_cast<std::size_t>(rank)]; }
  /// `pair` is an index in ReplayPlan::tied.
  const NcclSeat& tied(int rank, std::size_t pair) const { return tied_[static_cast<std::size_t>(rank)][pair]; }

  /// Returns the communicator of messages from one rank to another, where they are members 0 and 1. The first call
  /// registers it, so all ranks must ask in the same order.
  std::int32_t channel(MessageKind kind, int source, int destination);

  std::vector<NcclCommunicator> take() { return communicators_.take(); }

 private:
  CommunicatorNumbers communicators_;
  std::vector<NcclSeat> tensor_, context_, expert_;            // [rank]
  std::vector<std::vector<NcclSeat>> copies_, expert_copies_;  // [rank][stage]
  std::vector<NcclSeat> everyone_;                             // [rank]
  std::vector<std::vector<NcclSeat>> tied_;                    // [rank][pair]
};

}}  // namespace plumb::executor
