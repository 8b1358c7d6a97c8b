#pragma once
// A checkpoint of ranks that share no memory: each has written its own elements into a state of its own, and world
// rank 0 brings them together.

#include "executor/clock.h"
#include "executor/run_spec.h"
#include "executor/training/training_plan.h"
#include "executor/training/training_state.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

/// room_for_state() with the layers of the rank's stages only; the others have no parameters.
TrainingState own_room_for_state(const RunSpec& spec, const TrainingPlan& plan, int world_rank);

/// Called by all ranks. On world rank 0 the whole state, with what `own` says of the run; nothing elsewhere. Elements
/// that no rank or several have written must be zeros or equal: values are joined bit by bit.
TrainingState gather_state(const RunSpec& spec, const TrainingPlan& plan, const TrainingState& own, int world_rank,
                           Transport& transport, const Clock& clock);

}}  // namespace plumb::executor
