#pragma once
// Trains with real numerics: the cpu backend. One thread a rank, in this process; mpi/run_mpi.h has a process a rank.
//
//   const RunResult result = run(spec);
//   result.losses.back();

#include <functional>

#include "executor/interruption.h"
#include "executor/rank_threads.h"
#include "executor/run_result.h"
#include "executor/run_spec.h"
#include "executor/training/training_state.h"

namespace plumb { inline namespace executor {

struct RunOptions {
  bool capture_gradients = false;  ///< keep what each optimizer step consumes (for tests)
  bool capture_weights = false;    ///< keep the weights after the last step (for tests)
  int checkpoint_every = 0;        ///< replays; 0: no checkpoints. The end has one too.
  std::function<void(const TrainingState&)>
      checkpoint;                    ///< called with each, on a rank's thread, while all others wait
  InterruptionListener interrupted;  ///< told what was done of a replay that failed
  EndQuestion ends;                  ///< whether it is to end before its last step
  RankThreadsOptions threads;
};

/// Replays spec.schedule `spec.steps` times, or fewer where it is to end. Global micro-batch g of replica r is r * m +
/// i; a sample's text and every initial weight depend on the seed alone, so results are those of any other layout up to
/// the order of additions, and the same every time. Memory counts every tensor: weights and their versions, gradients,
/// moments, activations, messages that wait; not the scratch of attention (512 s bytes a rank) and what a buffered
/// message occupies on its way. With `resume` it goes on as the run that the state is of would have gone on. Throws
/// SpecError or InputError if the specification is not consistent (place and remedy), or the state is of another
/// training, ScheduleError if the schedule cannot be replayed (plan_replay), RunError if a rank fails; then all ranks
/// have stopped.
RunResult run(const RunSpec& spec, const RunOptions& options = {});

}}  // namespace plumb::executor
