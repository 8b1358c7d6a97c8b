#pragma once
// A device program's calls with the places in the arenas on which each works: what is left is to enqueue them.

#include <cstdint>
#include <vector>

#include "executor/device_plan/device_program.h"
#include "executor/device_plan/joint_calls.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// Bytes from the beginning of a rank's arena, or of its part of the host's memory.
struct ArenaPlace {
  int rank = -1;  ///< -1: nothing is there
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool on_host = false;
};

/// One action of a call.
struct PlacedAction {
  Action action;
  std::int32_t id = 0;                     ///< the action's
  int rank = 0;                            ///< of the pipeline, whose action it is
  ArenaPlace early, late;                  ///< F, R, B, I, W, moves: what F keeps of the micro-batch, until I and W
  ArenaPlace away;                         ///< moves: both of them, one behind the other, where they are meanwhile
  ArenaPlace rebuilt_early, rebuilt_late;  ///< R, B, I, W: what is computed again, likewise
  bool recomputes = false;                 ///< B, I: no R has been there
  int step = 0;                            ///< OPTIMIZER_STEP: how many of its stage stand before it
  ArenaPlace weights;    ///< OPTIMIZER_STEP: where those go that it replaces, if somebody needs them still; F, R, B,
                         ///< I, W: those of their version, if it is not the newest
  ArenaPlace gathered;   ///< F, R, B, I, W, UNSHARD: whole weights that are sharded
  ArenaPlace gradients;  ///< B, I, W, REDUCE_GRAD: likewise gradients
  bool opens_gradients = false;           ///< the first to use them
  ArenaPlace sequences;                   ///< F, R, B, I: what the slices of the micro-batch keep of its sequences
  ArenaPlace sequence_gradients;          ///< B, I: what they owe to it
  bool opens_sequence_gradients = false;  ///< likewise
  ArenaPlace workspace;                   ///< F, R, B, I, W
  ArenaPlace incoming;                    ///< F: the stage's input; B, I: its output's gradient; SEND: what is sent
  ArenaPlace outgoing;                    ///< F: the stage's output; B, I: its input's gradient; SEND: where it goes
};

/// [call] its actions in the order of the list: two in an overlapped pair, one of each copy where copies of a stage do
/// something together (executor/device_plan/joint_calls.h), otherwise one. `lowered` is the schedule that `program` was
/// made of, with those passes.
std::vector<std::vector<PlacedAction>> placed_calls(const DeviceProgram& program, const Schedule& lowered,
                                                    JointPasses passes = JointPasses::kNone);

}}  // namespace plumb::executor
