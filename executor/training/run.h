#pragma once
// Trains with real numerics: the cpu backend, with one thread a rank in this process. mpi/run_mpi.h has a process a
// rank.
//
//   const RunResult result = run(spec);
//   result.losses.back();

#include <functional>

#include "executor/parameters/training_state.h"
#include "executor/spec/run_spec.h"
#include "executor/training/interruption.h"
#include "executor/training/run_result.h"
#include "executor/transport/rank_threads.h"

namespace plumb { inline namespace executor {

struct RunOptions {
  bool capture_gradients = false;  ///< keep the gradients that each optimizer step consumes (for tests)
  bool capture_weights = false;    ///< keep the weights after the last step (for tests)
  /// Replays between two checkpoints; 0: no checkpoints. One is written at the end too.
  int checkpoint_every = 0;
  /// Called with each checkpoint, on a rank's thread, while all others wait.
  std::function<void(const TrainingState&)> checkpoint;
  InterruptionListener interrupted;  ///< receives the part of a replay that was done when it failed
  EndQuestion ends;                  ///< asks whether the run is to end before its last step
  RankThreadsOptions threads;
};

/// Replays spec.schedule `spec.steps` times, or fewer if `ends` says so, and returns losses, timelines and memory. With
/// `resume` the run goes on exactly as the run that wrote the checkpoint would have gone on.
///
/// Micro-batch i of replica r is micro-batch r * m + i of the global batch. A sample's text and every initial weight
/// depend on the seed alone, so results are those of any other layout up to the order of additions, and are the same
/// every time.
///
/// Memory counts every tensor: weights and their versions, gradients, moments, activations, and messages that wait. It
/// does not count the scratch of attention (512 s bytes a rank) and the buffers of messages under way.
///
/// Throws SpecError or InputError if the specification is not consistent (with the place and the remedy) or the
/// checkpoint is of another training, ScheduleError if the schedule cannot be replayed (plan_replay), and RunError if a
/// rank fails. All ranks have stopped by then.
RunResult run(const RunSpec& spec, const RunOptions& options = {});

}}  // namespace plumb::executor
