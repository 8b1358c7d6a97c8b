#pragma once
// A device program's calls with the places in the arenas on which each works.

#include <cstdint>
#include <vector>

#include "executor/program/device/device_program.h"
#include "executor/program/device/joint_calls.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// A place in a rank's arena, or in its part of the host's memory, by its offset in bytes.
struct ArenaPlace {
  int rank = -1;  ///< -1: nothing is there
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool on_host = false;
};

/// An action of a call, with its places. Where an operation has no use for a place, its rank is -1.
struct PlacedAction {
  Action action;
  std::int32_t id = 0;      ///< the action's (schedules/dependencies/dependencies.h)
  int rank = 0;             ///< pipeline rank whose action it is
  bool recomputes = false;  ///< B, I: no R has run
  int step = 0;             ///< OPTIMIZER_STEP: steps of its stage before it

  /// F, R, B, I, W, moves: activations of the micro-batch that F keeps, until I and until W.
  ArenaPlace early, late;
  /// Moves: both of them, one behind the other, where they are away.
  ArenaPlace away;
  /// R, B, I, W: activations that are computed again, until I and until W.
  ArenaPlace rebuilt_early, rebuilt_late;
  /// OPTIMIZER_STEP: where the old weights go, if a pass still needs them. F, R, B, I, W: the weights of their version,
  /// if it is not the newest.
  ArenaPlace weights;
  /// F, R, B, I, W, UNSHARD: whole weights of which the rank has a share.
  ArenaPlace gathered;
  /// B, I, W, REDUCE_GRAD: whole gradients of which the rank has a share.
  ArenaPlace gradients;
  bool opens_gradients = false;  ///< it is the first to use them
  /// F, R, B, I: activations that the slices of the micro-batch keep of its whole sequences.
  ArenaPlace sequences;
  /// B, I: gradients of those.
  ArenaPlace sequence_gradients;
  bool opens_sequence_gradients = false;  ///< it is the first to use them
  /// F, R, B, I, W.
  ArenaPlace workspace;
  /// F: the stage's input. B, I: the gradient of its output. SEND: the message.
  ArenaPlace incoming;
  /// F: the stage's output. B, I: the gradient of its input. SEND: the message's place at the receiver.
  ArenaPlace outgoing;
};

/// [call] its actions in the order of the list: two in an overlapped pair, one of each copy where copies of a stage do
/// something together (executor/program/device/joint_calls.h), otherwise one. `program` was made of `lowered` with those
/// passes.
std::vector<std::vector<PlacedAction>> placed_calls(const DeviceProgram& program, const Schedule& lowered,
                                                    JointPasses passes = JointPasses::kNone);

}}  // namespace plumb::executor
