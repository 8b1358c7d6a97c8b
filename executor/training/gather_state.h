#pragma once
// The checkpoint of ranks that share no memory. Each rank has written its own elements into a state of its own, and
// world rank 0 joins them.

#include "executor/parameters/training_state.h"
#include "executor/spec/run_spec.h"
#include "executor/training/training_plan.h"
#include "executor/transport/clock.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

/// Returns room_for_state() with the layers of the rank's stages only; the others have no parameters.
TrainingState own_room_for_state(const RunSpec& spec, const TrainingPlan& plan, int world_rank);

/// Called by all ranks. Returns the whole state on world rank 0, with the steps, updates and loss scale of `own`, and
/// nothing elsewhere. Elements that no rank or several ranks have written must be zeros or equal: values are joined bit
/// by bit.
TrainingState gather_state(const RunSpec& spec, const TrainingPlan& plan, const TrainingState& own, int world_rank,
                           Transport& transport, const Clock& clock);

}}  // namespace plumb::executor
