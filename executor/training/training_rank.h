#pragma once
// One rank of a training run, on whatever transport: the cpu backend's part of a thread or a process.

#include <functional>
#include <vector>

#include "executor/clock.h"
#include "executor/interruption.h"
#include "executor/run_result.h"
#include "executor/training/training_plan.h"
#include "executor/training/training_state.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

/// Where checkpoints are made. All ranks have the same `every`.
struct CheckpointDesk {
  int every = 0;                                      ///< replays; 0: no checkpoints. The end has one too.
  TrainingState* state = nullptr;                     ///< room for the rank's own elements
  bool is_shared = true;                              ///< all ranks write into the same
  std::function<void(const TrainingState&)> deliver;  ///< called on each rank when all have written theirs
};

/// What a rank trains with. All of it outlives the training.
struct TrainingSeat {
  int world_rank = 0;
  Transport* transport = nullptr;
  TensorPool* pool = nullptr;
  TensorPool* host_pool = nullptr;
  Clock clock;  ///< the transport's
  CheckpointDesk checkpoints;
  std::vector<ModelValues>* gradients = nullptr;  ///< [optimizer step] where the rank's own are written; null: nowhere
  ModelValues* weights = nullptr;                 ///< likewise, after the last step
  std::function<void(RankTimeline)> interrupted;  ///< what was done of a replay that failed
  EndQuestion ends;                               ///< whether it is to end before spec.steps
};

/// Replays the rank's list from plan.first_step to spec.steps, or until a rank is to end. Throws RunError with rank,
/// action and reason, RunAborted if another rank failed first; the transport has been aborted then.
RankOutcome train_rank(const RunSpec& spec, const TrainingPlan& plan, const TrainingSeat& seat);

}}  // namespace plumb::executor
