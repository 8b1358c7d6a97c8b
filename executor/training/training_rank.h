#pragma once
// One rank of a training run, on any transport: the part of the cpu backend on one thread or process.

#include <functional>
#include <vector>

#include "executor/parameters/training_state.h"
#include "executor/training/interruption.h"
#include "executor/training/run_result.h"
#include "executor/training/training_plan.h"
#include "executor/transport/clock.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

/// The options and the memory of checkpoints. All ranks must have the same `every`.
struct CheckpointDesk {
  /// Replays between two checkpoints; 0: no checkpoints. One is written at the end too.
  int every = 0;
  TrainingState* state = nullptr;                     ///< room for the rank's own elements
  bool is_shared = true;                              ///< true if all ranks write into the same state
  std::function<void(const TrainingState&)> deliver;  ///< called on each rank when all have written
};

/// The resources with which a rank trains. All of them must outlive the training.
struct TrainingSeat {
  int world_rank = 0;
  Transport* transport = nullptr;
  TensorPool* pool = nullptr;
  TensorPool* host_pool = nullptr;
  Clock clock;  ///< the transport's clock
  CheckpointDesk checkpoints;
  /// [optimizer step] Receives the rank's own gradients; null: not kept.
  std::vector<ModelValues>* gradients = nullptr;
  ModelValues* weights = nullptr;  ///< receives the rank's own weights after the last step; null: not kept
  std::function<void(RankTimeline)> interrupted;  ///< receives the part of a replay that was done when it failed
  EndQuestion ends;                               ///< asks whether it is to end before spec.steps
};

/// Replays the rank's list from plan.first_step to spec.steps, or until a rank is to end. Throws RunError with rank,
/// action and reason, or RunAborted if another rank failed first. The transport has been aborted then.
RankOutcome train_rank(const RunSpec& spec, const TrainingPlan& plan, const TrainingSeat& seat);

}}  // namespace plumb::executor
