#pragma once
// The messages of one rank between stages, as calls: as executor/stage_messages.cpp moves them.

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "executor/nccl/rank_calls.h"
#include "executor/nccl/stage_exchanges.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

/// What all ranks' lists are made of.
struct OrderInputs {
  const RunSpec& spec;
  const TrainingPlan& plan;
  const NcclOrderOptions& options;
  std::vector<StageExchanges> stages;
  std::vector<std::vector<bool>> rebuilt;        // [stage][micro-batch]
  std::set<std::pair<int, std::size_t>> groups;  // pipeline rank and place of the first of two messages in one group
};

class MessageCalls {
 public:
  /// All outlive it.
  MessageCalls(const OrderInputs& inputs, int rank, RankCalls& calls, NcclCommunicators& communicators);

  /// The compute so far has made the action's output, or the gradient of its input.
  void made(const Action& action, MessageKind kind) { made_[index(kind)][slot(action)] = calls_.last_compute(); }

  /// The SEND or RECV at this place of the list.
  void message(std::size_t position);

  /// The input of a compute action: awaited, and completed among the tensor ranks of a mesh of another shape.
  void take(const Action& action, MessageKind kind, const NcclSeat& tensor);

 private:
  static std::size_t index(MessageKind kind) { return static_cast<std::size_t>(kind); }
  const std::vector<Action>& own_actions() const {
    return replay_.schedule.ranks[static_cast<std::size_t>(place_.pipeline)];
  }
  int pipeline_rank_of(int stage) const { return replay_.schedule.stages[static_cast<std::size_t>(stage)].rank; }
  const StageExchanges& stage(int number) const { return in_.stages[static_cast<std::size_t>(number)]; }
  int peer_stage(const Action& action) const;
  std::size_t slot(const Action& action) const;
  MeshTensor mesh_tensor(int pipeline_rank) const;
  bool has_shape_of(int pipeline_rank) const;
  int own_part() const;
  int rank_there(int pipeline_rank, int part, int tensor) const;

  const OrderInputs& in_;
  const ReplayPlan& replay_;
  const int rank_;
  const GridCoordinates place_;
  RankCalls& calls_;
  NcclCommunicators& communicators_;
  const std::size_t slices_, per_stage_;
  std::array<std::vector<std::int32_t>, 2> made_;                  // [kind][slot] the compute behind which it is there
  std::array<std::vector<std::vector<std::int32_t>>, 2> arrived_;  // [kind][slot] the receives
  std::int32_t open_group_ = NcclCall::kNone;                      // which the next action closes
};

}}  // namespace plumb::executor
