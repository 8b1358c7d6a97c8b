#include "executor/program/device/device_buffers.h"

#include <algorithm>
#include <utility>

#include "executor/program/device/replaced_weights.h"
#include "schedules/dependencies/action_table.h"

namespace plumb { inline namespace executor {
namespace {

/// Walks every rank's list of actions and opens, uses and leaves buffers.
class BufferWalk {
 public:
  BufferWalk(const Schedule& schedule, const CostTable& costs, const DeviceCalls& calls,
             std::span<const DeviceStageBytes> stage_bytes, const MicrobatchMemory& of_microbatches)
      : schedule_(schedule),
        costs_(costs),
        calls_(calls),
        stage_bytes_(stage_bytes),
        of_microbatches_(of_microbatches),
        table_(schedule),
        neighbors_(stage_neighbors(schedule)),
        slots_(schedule.stages.size() * static_cast<std::size_t>(schedule.microbatches) *
               static_cast<std::size_t>(table_.parts())),
        gathered_(schedule.stages.size(), kNone),
        gradients_(schedule.stages.size(), kNone),
        sequences_(schedule.stages.size() * static_cast<std::size_t>(schedule.microbatches)),
        replacers_(weight_replacers(schedule)),
        replaced_(replacers_.size(), kNone) {}

  std::vector<DeviceBuffer> walk() {
    std::size_t id = 0;
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      rank_ = static_cast<int>(rank);
      for (const Action& action : schedule_.ranks[rank]) {
        maker_ = static_cast<std::int32_t>(id);
        visit(action, calls_.of_action[id++]);
      }
    }
    std::erase_if(buffers_, [](const DeviceBuffer& buffer) { return buffer.bytes == 0; });
    for (DeviceBuffer& buffer : buffers_) {
      std::ranges::sort(buffer.calls);
      buffer.calls.erase(std::unique(buffer.calls.begin(), buffer.calls.end()), buffer.calls.end());
    }
    return std::move(buffers_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// The buffers of one micro-batch (or slice) on its stage's rank; `early` is the part that I frees, `late` stays
  /// until W.
  struct Slot {
    std::size_t kept_early = kNone, kept_late = kNone;
    std::size_t rebuilt_early = kNone, rebuilt_late = kNone;
    std::size_t away = kNone;
  };

  /// The buffers that all slices of a micro-batch share on its stage's rank.
  struct Sequences {
    std::size_t kept = kNone, gradients = kNone;
  };

  void visit(const Action& action, std::int32_t call) {
    const StageMemory& memory = memory_of(action);
    if (is_compute(action.op) && action.op != Op::kOptimizerStep)
      use(gathered_[static_cast<std::size_t>(action.stage)], call);
    if (!stage_bytes_.empty()) {
      add_gradients(action, call);
      use_sequences(action, call);
    }
    use_replaced_weights(action, call);
    switch (action.op) {
      case Op::kForward:
        keep(action, call);
        open(rank_, BufferUse::kWorkspace, memory.forward_workspace_bytes, {call});
        return hand_over(action, call);
      case Op::kRecompute:
        use_kept(action, call);
        rebuild(action, call);
        open(rank_, BufferUse::kWorkspace, memory.forward_workspace_bytes, {call});
        return;
      case Op::kBackward:
      case Op::kInputGrad:
        if (slot(action).rebuilt_late == kNone) rebuild(action, call);
        use(slot(action).kept_early, call);
        use(slot(action).kept_late, call);
        use(slot(action).rebuilt_early, call);
        use(slot(action).rebuilt_late, call);
        open(rank_, BufferUse::kWorkspace, memory.backward_workspace_bytes, {call});
        return hand_over(action, call);
      case Op::kWeightGrad:
        use(slot(action).kept_late, call);
        use(slot(action).rebuilt_late, call);
        open(rank_, BufferUse::kWorkspace, memory.backward_workspace_bytes, {call});
        return;
      case Op::kRecvActivation:
        return message(action, neighbors_.predecessor, Op::kSendActivation);
      case Op::kRecvGradient:
        return message(action, neighbors_.successor, Op::kSendGradient);
      case Op::kOffload:
        use_kept(action, call);
        slot(action).away = open(rank_, BufferUse::kHost, memory.forward_bytes, {call});
        return;
      case Op::kEvict:
        use_kept(action, call);
        slot(action).away =
            open(static_cast<int>(schedule_.ranks.size()) - 1 - rank_, BufferUse::kGuest, memory.forward_bytes, {call});
        return;
      case Op::kReload:
      case Op::kLoad:
        use(slot(action).away, call);
        return keep(action, call);
      case Op::kUnshard: {
        std::size_t& gathered = gathered_[static_cast<std::size_t>(action.stage)];
        if (gathered == kNone) gathered = open(rank_, BufferUse::kGathered, memory.unsharded_bytes, {});
        return use(gathered, call);
      }
      case Op::kReshard:
        gathered_[static_cast<std::size_t>(action.stage)] = kNone;
        return;
      case Op::kOptimizerStep:
        if (!stage_bytes_.empty())
          open(rank_, BufferUse::kWorkspace, stage_bytes_[static_cast<std::size_t>(action.stage)].update_workspace,
               {call});
        return;
      default:
        return;
    }
  }

  const StageMemory& memory_of(const Action& action) const {
    const auto stage = static_cast<std::size_t>(action.stage);
    if (action.microbatch < 0 || of_microbatches_.empty() || of_microbatches_[stage].empty())
      return costs_.stages[stage].memory;
    return of_microbatches_[stage][static_cast<std::size_t>(action.microbatch)];
  }

  /// Handles gradients that are sharded: B, I and W add to all of them, and REDUCE_GRAD is the last to use them.
  void add_gradients(const Action& action, std::int32_t call) {
    std::size_t& gradients = gradients_[static_cast<std::size_t>(action.stage)];
    const std::int64_t bytes = stage_bytes_[static_cast<std::size_t>(action.stage)].whole_gradients;
    if (gives_input_gradient(action.op) || gives_weight_gradient(action.op)) {
      if (gradients == kNone) gradients = open(rank_, BufferUse::kGradients, bytes, {});
      return use(gradients, call);
    }
    if (action.op != Op::kReduceGrad) return;
    use(gradients, call);
    gradients = kNone;
  }

  /// Attention of a slice reads the keys and values of earlier slices, and adds to their gradients.
  void use_sequences(const Action& action, std::int32_t call) {
    const bool is_backward = gives_input_gradient(action.op);
    if (!is_backward && action.op != Op::kForward && action.op != Op::kRecompute) return;
    const DeviceStageBytes& bytes = stage_bytes_[static_cast<std::size_t>(action.stage)];
    Sequences& own =
        sequences_[static_cast<std::size_t>(action.stage) * static_cast<std::size_t>(schedule_.microbatches) +
                   static_cast<std::size_t>(action.microbatch)];
    if (own.kept == kNone) own.kept = open(rank_, BufferUse::kSequences, bytes.sequences, {});
    use(own.kept, call);
    if (!is_backward) return;
    if (own.gradients == kNone)
      own.gradients = open(rank_, BufferUse::kSequenceGradients, bytes.sequence_gradients, {});
    use(own.gradients, call);
  }

  /// Opens the buffers of activations, which the forward makes or a move brings back.
  void keep(const Action& action, std::int32_t call) {
    const StageMemory& memory = memory_of(action);
    const std::int64_t early = memory.released_at_input_grad_bytes - rebuilt_early_bytes(memory);
    slot(action).kept_early = open(rank_, BufferUse::kActivations, early, {call});
    buffers_.back().freed_by_input_grad = true;
    slot(action).kept_late = open(rank_, BufferUse::kActivations, memory.forward_bytes - early, {call});
  }

  void rebuild(const Action& action, std::int32_t call) {
    const StageMemory& memory = memory_of(action);
    const std::int64_t early = rebuilt_early_bytes(memory);
    slot(action).rebuilt_early = open(rank_, BufferUse::kRebuilt, early, {call});
    buffers_.back().freed_by_input_grad = true;
    slot(action).rebuilt_late = open(rank_, BufferUse::kRebuilt, memory.recompute_bytes - early, {call});
  }

  /// Returns the part of the rebuilt bytes that is freed at the end of I: as much as I frees, at most all
  /// (simulator/memory/memory_changes.h).
  static std::int64_t rebuilt_early_bytes(const StageMemory& memory) {
    return std::min(memory.recompute_bytes, memory.released_at_input_grad_bytes);
  }

  /// Uses weights that the stage has replaced; their copy is made at the OPTIMIZER_STEP that replaced them.
  void use_replaced_weights(const Action& action, std::int32_t call) {
    const std::int32_t replacer = replacers_[static_cast<std::size_t>(maker_)];
    if (replacer < 0) return;
    std::size_t& buffer = replaced_[static_cast<std::size_t>(replacer)];
    if (buffer == kNone) {
      buffer =
          open(rank_, BufferUse::kWeights, costs_.stages[static_cast<std::size_t>(action.stage)].memory.parameter_bytes,
               {calls_.of_action[static_cast<std::size_t>(replacer)]});
      buffers_.back().maker = replacer;
    }
    use(buffer, call);
  }

  void use_kept(const Action& action, std::int32_t call) {
    use(slot(action).kept_early, call);
    use(slot(action).kept_late, call);
  }

  /// Opens the buffer of a stage's output or input gradient for its neighbour, on this rank or through the SEND that
  /// follows.
  void hand_over(const Action& action, std::int32_t call) {
    const bool forward = action.op == Op::kForward;
    const auto stage = static_cast<std::size_t>(action.stage);
    const int neighbor = (forward ? neighbors_.successor : neighbors_.predecessor)[stage];
    if (neighbor < 0) return;
    const StageCosts& costs = costs_.stages[stage];
    std::int32_t taker = ActionTable::kNone;
    if (schedule_.stages[static_cast<std::size_t>(neighbor)].rank != rank_) {
      taker =
          table_.find(forward ? Op::kSendActivation : Op::kSendGradient, action.stage, action.microbatch, action.part);
    } else {
      taker = consumer(forward, neighbor, action);
    }
    if (taker == ActionTable::kNone) return;  // no action wants a gradient, e.g. in a schedule of forwards
    open(rank_, BufferUse::kHandOver, forward ? costs.activation_message_bytes : costs.gradient_message_bytes,
         {call, calls_.of_action[static_cast<std::size_t>(taker)]});
    buffers_.back().taker = taker;
  }

  void message(const Action& receive, const std::vector<int>& senders, Op send) {
    const int sender = senders[static_cast<std::size_t>(receive.stage)];
    const bool forward = send == Op::kSendActivation;
    const std::int32_t copy = table_.find(send, sender, receive.microbatch, receive.part);
    const std::int32_t reader = consumer(forward, receive.stage, receive);
    if (copy == ActionTable::kNone || reader == ActionTable::kNone) return;
    const StageCosts& costs = costs_.stages[static_cast<std::size_t>(sender)];
    const StageCosts& own = costs_.stages[static_cast<std::size_t>(receive.stage)];
    const std::int64_t sent = forward ? costs.activation_message_bytes : costs.gradient_message_bytes;
    // On a mesh of another shape a rank holds as many bytes as its own messages in the other direction have.
    const std::int64_t held = forward ? own.gradient_message_bytes : own.activation_message_bytes;
    open(rank_, BufferUse::kMessage, held > 0 ? held : sent,
         {calls_.of_action[static_cast<std::size_t>(copy)], calls_.of_action[static_cast<std::size_t>(reader)]});
    buffers_.back().taker = reader;
  }

  /// Returns the action that reads the activation or gradient that reaches a stage.
  std::int32_t consumer(bool forward, int stage, const Action& of) const {
    if (forward) return table_.find(Op::kForward, stage, of.microbatch, of.part);
    const std::int32_t whole = table_.find(Op::kBackward, stage, of.microbatch, of.part);
    return whole != ActionTable::kNone ? whole : table_.find(Op::kInputGrad, stage, of.microbatch, of.part);
  }

  std::size_t open(int rank, BufferUse use, std::int64_t bytes, std::vector<std::int32_t> calls) {
    buffers_.push_back({.rank = rank, .use = use, .maker = maker_, .bytes = bytes, .calls = std::move(calls)});
    return buffers_.size() - 1;
  }

  void use(std::size_t buffer, std::int32_t call) {
    if (buffer != kNone) buffers_[buffer].calls.push_back(call);
  }

  Slot& slot(const Action& action) {
    const auto microbatch = static_cast<std::size_t>(action.stage) * static_cast<std::size_t>(schedule_.microbatches) +
                            static_cast<std::size_t>(action.microbatch);
    return slots_[microbatch * static_cast<std::size_t>(table_.parts()) + static_cast<std::size_t>(action.part)];
  }

  const Schedule& schedule_;
  const CostTable& costs_;
  const DeviceCalls& calls_;
  std::span<const DeviceStageBytes> stage_bytes_;
  const MicrobatchMemory& of_microbatches_;
  ActionTable table_;
  StageNeighbors neighbors_;
  std::vector<Slot> slots_;              // [stage, micro-batch, slice]
  std::vector<std::size_t> gathered_;    // [stage] the whole weights that are gathered now
  std::vector<std::size_t> gradients_;   // [stage] the whole gradients that are summed now
  std::vector<Sequences> sequences_;     // [stage, micro-batch]
  std::vector<std::int32_t> replacers_;  // [action id]
  std::vector<std::size_t> replaced_;    // [action id] the weights that an OPTIMIZER_STEP has replaced
  std::vector<DeviceBuffer> buffers_;
  int rank_ = 0;
  std::int32_t maker_ = 0;  // the action that is visited
};

}  // namespace

std::vector<DeviceBuffer> device_buffers(const Schedule& lowered, const CostTable& costs, const DeviceCalls& calls,
                                         std::span<const DeviceStageBytes> stage_bytes,
                                         const MicrobatchMemory& of_microbatches) {
  return BufferWalk(lowered, costs, calls, stage_bytes, of_microbatches).walk();
}

}}  // namespace plumb::executor
