#include "executor/nccl/message_calls.h"

#include <algorithm>
#include <utility>

#include "executor/division/resharding_pieces.h"

namespace plumb { inline namespace executor {

MessageCalls::MessageCalls(const OrderInputs& inputs, int rank, RankCalls& calls, NcclCommunicators& communicators)
    : in_(inputs),
      replay_(inputs.plan.replay),
      rank_(rank),
      place_(coordinates_of(replay_.grid, rank)),
      calls_(calls),
      communicators_(communicators),
      slices_(static_cast<std::size_t>(replay_.slices)),
      per_stage_(static_cast<std::size_t>(replay_.schedule.microbatches) * slices_) {
  for (auto& slots : made_) slots.assign(per_stage_ * replay_.schedule.stages.size(), NcclCall::kNone);
  for (auto& slots : arrived_) slots.resize(made_.front().size());
}

std::size_t MessageCalls::slot(const Action& action) const {
  return static_cast<std::size_t>(action.stage) * per_stage_ + static_cast<std::size_t>(action.microbatch) * slices_ +
         static_cast<std::size_t>(action.part);
}

int MessageCalls::peer_stage(const Action& action) const {
  const bool to_next = action.op == Op::kSendActivation || action.op == Op::kRecvGradient;
  return (to_next ? replay_.neighbors.successor
                  : replay_.neighbors.predecessor)[static_cast<std::size_t>(action.stage)];
}

MeshTensor MessageCalls::mesh_tensor(int pipeline_rank) const {
  const int tensor = mesh_of(replay_.grid, pipeline_rank).tensor;
  return {.parts = parts_of_microbatch(replay_.grid, pipeline_rank),
          .tensor = tensor,
          .scattered = replay_.policy.sequence_parallel && tensor > 1};
}
bool MessageCalls::has_shape_of(int pipeline_rank) const {
  return mesh_of(replay_.grid, pipeline_rank) == mesh_of(replay_.grid, place_.pipeline);
}
int MessageCalls::own_part() const {
  return place_.data % std::max(1, parts_of_microbatch(replay_.grid, place_.pipeline));
}
int MessageCalls::rank_there(int pipeline_rank, int part, int tensor) const {
  const int pipeline = place_.data / std::max(1, parts_of_microbatch(replay_.grid, place_.pipeline));
  return world_rank_of(replay_.grid, {.tensor = tensor,
                                      .context = place_.context,
                                      .data = pipeline * parts_of_microbatch(replay_.grid, pipeline_rank) + part,
                                      .pipeline = pipeline_rank});
}

void MessageCalls::message(std::size_t position) {
  const Action& action = own_actions()[position];
  const bool sends = is_send(action.op);
  const bool forward = action.op == Op::kSendActivation || action.op == Op::kRecvActivation;
  const MessageKind kind = forward ? MessageKind::kActivation : MessageKind::kGradient;
  const int there = pipeline_rank_of(peer_stage(action));
  std::int32_t group = std::exchange(open_group_, NcclCall::kNone);
  if (in_.groups.contains({place_.pipeline, position})) open_group_ = group = calls_.new_group();
  // A receive is issued when the compute before it has ended (docs/design.md, rule 1).
  const std::int32_t behind = sends ? made_[index(kind)][slot(action)] : calls_.last_compute();
  std::vector<std::int32_t>& arrived = arrived_[index(kind)][slot(action)];
  const auto move = [&](int peer, std::int64_t words) {
    const std::vector<int> ends = sends ? std::vector{rank_, peer} : std::vector{peer, rank_};
    const std::int32_t communicator =
        communicators_.number_of(kind == MessageKind::kActivation ? "activations" : "gradients", ends);
    const std::int32_t call =
        calls_.message(sends ? NcclKind::kSend : NcclKind::kReceive, communicator, 4 * words, group, behind);
    if (!sends) arrived.push_back(call);
  };
  const int number = sends ? peer_stage(action) : action.stage;  // whose input, or output's gradient, it is
  const std::int64_t words =
      (kind == MessageKind::kActivation ? stage(number).input_words
                                        : stage(number).output_words)[static_cast<std::size_t>(action.part)];
  if (has_shape_of(there)) return move(rank_there(there, own_part(), place_.tensor), words);
  const int receiver = sends ? there : place_.pipeline;
  const MeshTensor own = mesh_tensor(place_.pipeline), other = mesh_tensor(there), to = mesh_tensor(receiver);
  const std::int64_t whole = words * to.parts * (to.scattered ? to.tensor : 1);
  if (group == NcclCall::kNone) group = calls_.new_group();
  for (const ReshardingPiece& piece :
       resharding_pieces(sends ? own : other, sends ? other : own, replay_.policy.resharding, whole)) {
    const int part = sends ? piece.from_part : piece.to_part, tensor = sends ? piece.from_tensor : piece.to_tensor;
    if (part != own_part() || tensor != place_.tensor) continue;
    move(rank_there(there, sends ? piece.to_part : piece.from_part, sends ? piece.to_tensor : piece.from_tensor),
         piece.count);
  }
}

void MessageCalls::take(const Action& action, MessageKind kind, const NcclSeat& tensor) {
  std::vector<std::int32_t>& arrived = arrived_[index(kind)][slot(action)];
  const int neighbor =
      (kind == MessageKind::kActivation ? replay_.neighbors.predecessor
                                        : replay_.neighbors.successor)[static_cast<std::size_t>(action.stage)];
  if (neighbor < 0 || pipeline_rank_of(neighbor) == place_.pipeline) return;
  calls_.await(arrived);
  arrived.clear();
  const MeshTensor own = mesh_tensor(place_.pipeline);
  if (has_shape_of(pipeline_rank_of(neighbor)) || own.tensor == 1 || own.scattered ||
      replay_.policy.resharding == Resharding::kDirect)
    return;
  const StageExchanges& of = stage(action.stage);
  calls_.exchange(tensor, {.op = replay_.policy.resharding == Resharding::kBroadcast ? CollectiveKind::kBroadcast
                                                                                     : CollectiveKind::kAllGather,
                           .elements = (kind == MessageKind::kActivation
                                            ? of.input_words
                                            : of.output_words)[static_cast<std::size_t>(action.part)]});
}

}}  // namespace plumb::executor
