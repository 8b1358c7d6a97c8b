#pragma once
// The groups of ranks that a device's calls meet in, and the channels of messages, numbered alike on every rank; named
// as executor/nccl names them.

#include <vector>

#include "executor/device_plan/device_exchange.h"
#include "executor/nccl/communicator_numbers.h"
#include "executor/training/training_plan.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

class DeviceGroupTable {
 public:
  explicit DeviceGroupTable(const TrainingPlan& plan);

  /// `number` is NcclCall::kNone where the rank is alone.
  const NcclSeat& tensor(int rank) const { return tensor_[static_cast<std::size_t>(rank)]; }
  const NcclSeat& context(int rank) const { return context_[static_cast<std::size_t>(rank)]; }
  const NcclSeat& expert(int rank) const { return expert_[static_cast<std::size_t>(rank)]; }
  const NcclSeat& copies(int rank, int stage) const {
    return copies_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage)];
  }
  /// Those of them that have the same experts.
  const NcclSeat& expert_copies(int rank, int stage) const {
    return expert_copies_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage)];
  }

  /// Where all ranks agree on something before a step; otherwise alone.
  const NcclSeat& everyone(int rank) const { return everyone_[static_cast<std::size_t>(rank)]; }
  /// `pair`: of ReplayPlan::tied.
  const NcclSeat& tied(int rank, std::size_t pair) const { return tied_[static_cast<std::size_t>(rank)][pair]; }

  /// The communicator of messages from one rank to another, of which they are members 0 and 1. Registered on the first
  /// call: all ranks ask in one order.
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
