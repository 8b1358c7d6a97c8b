#include "executor/program/calls/placed_calls.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "executor/program/device/joint_calls.h"
#include "executor/program/device/replaced_weights.h"
#include "schedules/dependencies/action_table.h"

namespace plumb { inline namespace executor {
namespace {

/// Places of a program's buffers by the action that they are there for.
class BufferIndex {
 public:
  BufferIndex(const DeviceProgram& program, std::size_t actions) : of_(actions) {
    for (const DeviceBuffer& buffer : program.buffers) {
      const ArenaPlace place{.rank = buffer.rank,
                             .offset = buffer.offset,
                             .bytes = buffer.bytes,
                             .on_host = buffer.use == BufferUse::kHost};
      Places& made = of_[static_cast<std::size_t>(buffer.maker)];
      switch (buffer.use) {
        case BufferUse::kActivations:
          (buffer.freed_by_input_grad ? made.early : made.late) = place;
          break;
        case BufferUse::kRebuilt:
          (buffer.freed_by_input_grad ? made.rebuilt_early : made.rebuilt_late) = place;
          break;
        case BufferUse::kWorkspace:
          made.workspace = place;
          break;
        case BufferUse::kWeights:
          made.weights = place;
          break;
        case BufferUse::kHost:
        case BufferUse::kGuest:
          made.away = place;
          break;
        case BufferUse::kMessage:
          made.message = place;
          of_[static_cast<std::size_t>(buffer.taker)].incoming = place;
          break;
        case BufferUse::kHandOver:
          made.handed_over = place;
          of_[static_cast<std::size_t>(buffer.taker)].incoming = place;
          break;
        default:
          break;
      }
    }
  }

  struct Places {
    ArenaPlace early, late, away, rebuilt_early, rebuilt_late, workspace, message, handed_over, incoming, weights;
  };
  const Places& of(std::int32_t action) const { return of_[static_cast<std::size_t>(action)]; }

 private:
  std::vector<Places> of_;  // [action id]
};

/// Buffers that several calls of a stage share, by call: whole weights and gradients, and buffers of a micro-batch's
/// whole sequences.
class StageBuffers {
 public:
  StageBuffers(const DeviceProgram& program, const Schedule& lowered, const ActionIds& ids) {
    for (const DeviceBuffer& buffer : program.buffers) {
      if (!is_of_stage(buffer.use) && !is_of_sequences(buffer.use)) continue;
      const ActionPlace maker = place_of(ids, buffer.maker);
      const Action& action =
          lowered.ranks[static_cast<std::size_t>(maker.rank)][static_cast<std::size_t>(maker.position)];
      for (const std::int32_t call : buffer.calls) of_[key_of(buffer.use, call, action)] = &buffer;
    }
  }

  void place(PlacedAction& placed, std::int32_t call) const {
    const auto put = [&](BufferUse use, ArenaPlace& at, bool* opens = nullptr) {
      const auto found = of_.find(key_of(use, call, placed.action));
      if (found == of_.end()) return;
      at = {found->second->rank, found->second->offset};
      if (opens != nullptr) *opens = found->second->calls.front() == call;
    };
    put(BufferUse::kGathered, placed.gathered);
    put(BufferUse::kGradients, placed.gradients, &placed.opens_gradients);
    put(BufferUse::kSequences, placed.sequences);
    put(BufferUse::kSequenceGradients, placed.sequence_gradients, &placed.opens_sequence_gradients);
  }

 private:
  using Key = std::tuple<BufferUse, std::int32_t, int, int>;  // call, stage, micro-batch

  static bool is_of_stage(BufferUse use) { return use == BufferUse::kGathered || use == BufferUse::kGradients; }
  static bool is_of_sequences(BufferUse use) {
    return use == BufferUse::kSequences || use == BufferUse::kSequenceGradients;
  }
  static Key key_of(BufferUse use, std::int32_t call, const Action& action) {
    return {use, call, action.stage, is_of_sequences(use) ? action.microbatch : -1};
  }

  std::map<Key, const DeviceBuffer*> of_;
};

/// Returns the action whose buffers of recomputed activations a micro-batch's backward would use.
std::int32_t rebuilder_of(const ActionTable& table, const Action& of) {
  for (const Op op : {Op::kRecompute, Op::kInputGrad, Op::kBackward}) {
    const std::int32_t found = table.find(op, of.stage, of.microbatch, of.part);
    if (found != ActionTable::kNone) return found;
  }
  return ActionTable::kNone;
}

/// [action id] the action that has brought the activations of its micro-batch to where it finds them: F, RELOAD or
/// LOAD; -1: none has.
std::vector<std::int32_t> bringers(const Schedule& lowered) {
  std::vector<std::int32_t> of;
  for (const std::vector<Action>& actions : lowered.ranks) {
    std::map<std::tuple<int, int, int>, std::int32_t> newest;  // by stage, micro-batch, slice
    for (const Action& action : actions) {
      const auto id = static_cast<std::int32_t>(of.size());
      if (!has_microbatch(action.op)) {
        of.push_back(-1);
        continue;
      }
      const auto [at, is_new] = newest.try_emplace({action.stage, action.microbatch, action.part}, -1);
      if (action.op == Op::kForward || brings_back(action.op)) at->second = id;
      of.push_back(at->second);
    }
  }
  return of;
}

/// Returns how many OPTIMIZER_STEPs of the stage stand ahead of a place in its rank's list.
int steps_before(const Schedule& lowered, const ActionPlace& place, int stage) {
  const std::vector<Action>& list = lowered.ranks[static_cast<std::size_t>(place.rank)];
  return static_cast<int>(std::count_if(list.begin(), list.begin() + place.position, [stage](const Action& action) {
    return action.op == Op::kOptimizerStep && action.stage == stage;
  }));
}

}  // namespace

std::vector<std::vector<PlacedAction>> placed_calls(const DeviceProgram& program, const Schedule& lowered,
                                                    JointPasses passes) {
  const ActionIds ids = action_ids(lowered);
  const ActionTable table(lowered);
  const StageNeighbors neighbors = stage_neighbors(lowered);
  const std::vector<std::int32_t> replacers = weight_replacers(lowered);
  const std::vector<std::int32_t> brought_by = bringers(lowered);
  const BufferIndex buffers(program, static_cast<std::size_t>(ids.first_id.back()));

  const StageBuffers stage_buffers(program, lowered, ids);

  const auto placed = [&](std::int32_t id, const Action& action) {
    const BufferIndex::Places& own = buffers.of(id);
    PlacedAction result{.action = action,
                        .id = id,
                        .rank = place_of(ids, id).rank,
                        .workspace = own.workspace,
                        .incoming = own.incoming,
                        .outgoing = own.handed_over};
    const std::int32_t replacer = replacers[static_cast<std::size_t>(id)];
    if (replacer >= 0) result.weights = buffers.of(replacer).weights;
    if (action.op == Op::kOptimizerStep) {
      result.weights = own.weights;
      result.step = steps_before(lowered, place_of(ids, id), action.stage);
    } else if (is_send(action.op)) {
      const bool forward = action.op == Op::kSendActivation;
      const int to = (forward ? neighbors.successor : neighbors.predecessor)[static_cast<std::size_t>(action.stage)];
      const std::int32_t receive =
          table.find(forward ? Op::kRecvActivation : Op::kRecvGradient, to, action.microbatch, action.part);
      if (receive != ActionTable::kNone) result.outgoing = buffers.of(receive).message;
    } else if (action.microbatch >= 0) {
      const std::int32_t bringer = brought_by[static_cast<std::size_t>(id)];
      const std::int32_t rebuilder = rebuilder_of(table, action);
      if (bringer >= 0) {
        result.early = buffers.of(bringer).early;
        result.late = buffers.of(bringer).late;
      }
      if (takes_away(action.op)) result.away = own.away;
      if (brings_back(action.op)) {
        const Op taker = action.op == Op::kReload ? Op::kOffload : Op::kEvict;
        const std::int32_t took = table.find(taker, action.stage, action.microbatch, action.part);
        if (took != ActionTable::kNone) result.away = buffers.of(took).away;
      }
      if (rebuilder != ActionTable::kNone && action.op != Op::kForward) {
        const BufferIndex::Places& again = buffers.of(rebuilder);
        result.rebuilt_early = again.rebuilt_early;
        result.rebuilt_late = again.rebuilt_late;
        result.recomputes = rebuilder == id && action.op != Op::kRecompute;
      }
    }
    return result;
  };

  std::map<std::int32_t, std::vector<std::int32_t>> others;  // [leader] actions that are done together with it
  const std::vector<std::int32_t> leaders = joint_leaders(lowered, passes);
  for (std::size_t id = 0; id < leaders.size(); ++id)
    if (leaders[id] != static_cast<std::int32_t>(id)) others[leaders[id]].push_back(static_cast<std::int32_t>(id));

  std::vector<std::vector<PlacedAction>> calls;
  for (const DeviceCall& call : program.calls) {
    const ActionPlace at = place_of(ids, call.action);
    const std::vector<Action>& list = lowered.ranks[static_cast<std::size_t>(at.rank)];
    std::vector<PlacedAction>& actions = calls.emplace_back();
    for (std::int32_t i = 0;; ++i) {
      const Action& action = list[static_cast<std::size_t>(at.position + i)];
      actions.push_back(placed(call.action + i, action));
      stage_buffers.place(actions.back(), static_cast<std::int32_t>(calls.size()) - 1);
      if (!action.overlaps_next) break;
    }
    const auto joint = others.find(call.action);
    if (joint == others.end()) continue;
    for (const std::int32_t id : joint->second) {
      const ActionPlace there = place_of(ids, id);
      actions.push_back(
          placed(id, lowered.ranks[static_cast<std::size_t>(there.rank)][static_cast<std::size_t>(there.position)]));
      stage_buffers.place(actions.back(), static_cast<std::int32_t>(calls.size()) - 1);
    }
  }
  return calls;
}

}}  // namespace plumb::executor
