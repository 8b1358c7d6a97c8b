#include "executor/device/placed_calls.h"

#include <utility>

#include "schedules/action_table.h"

namespace plumb {
namespace {

/// The buffers of a program by the actions that they are there for.
class BufferIndex {
 public:
  BufferIndex(const DeviceProgram& program, std::size_t actions) : of_(actions) {
    for (const DeviceBuffer& buffer : program.buffers) {
      const ArenaPlace place{buffer.rank, buffer.offset};
      Places& made = of_[static_cast<std::size_t>(buffer.maker)];
      switch (buffer.use) {
        case BufferUse::kActivations:
          (buffer.freed_by_input_grad ? made.early : made.late) = place;
          break;
        case BufferUse::kWorkspace:
          made.workspace = place;
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
    ArenaPlace early, late, workspace, message, handed_over, incoming;
  };
  const Places& of(std::int32_t action) const { return of_[static_cast<std::size_t>(action)]; }

 private:
  std::vector<Places> of_;  // [action id]
};

}  // namespace

std::vector<std::vector<PlacedAction>> placed_calls(const DeviceProgram& program, const Schedule& lowered) {
  const ActionIds ids = action_ids(lowered);
  const ActionTable table(lowered);
  const StageNeighbors neighbors = stage_neighbors(lowered);
  const BufferIndex buffers(program, static_cast<std::size_t>(ids.first_id.back()));

  const auto placed = [&](std::int32_t id, const Action& action) {
    const BufferIndex::Places& own = buffers.of(id);
    PlacedAction result{
        .action = action, .workspace = own.workspace, .incoming = own.incoming, .outgoing = own.handed_over};
    if (is_send(action.op)) {
      const bool forward = action.op == Op::kSendActivation;
      const int to = (forward ? neighbors.successor : neighbors.predecessor)[static_cast<std::size_t>(action.stage)];
      const std::int32_t receive =
          table.find(forward ? Op::kRecvActivation : Op::kRecvGradient, to, action.microbatch, action.part);
      if (receive != ActionTable::kNone) result.outgoing = buffers.of(receive).message;
    } else if (action.microbatch >= 0) {
      const std::int32_t forward = table.find(Op::kForward, action.stage, action.microbatch, action.part);
      result.early = buffers.of(forward).early;
      result.late = buffers.of(forward).late;
    }
    return result;
  };

  std::vector<std::vector<PlacedAction>> calls;
  for (const DeviceCall& call : program.calls) {
    const ActionPlace at = place_of(ids, call.action);
    const std::vector<Action>& list = lowered.ranks[static_cast<std::size_t>(at.rank)];
    std::vector<PlacedAction>& actions = calls.emplace_back();
    for (std::int32_t i = 0;; ++i) {
      const Action& action = list[static_cast<std::size_t>(at.position + i)];
      actions.push_back(placed(call.action + i, action));
      if (!action.overlaps_next) break;
    }
  }
  return calls;
}

}  // namespace plumb
