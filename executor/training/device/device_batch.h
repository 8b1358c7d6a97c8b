#pragma once
// The data of a replay's micro-batches, as a rank reads them at the ends of the model.

#include "executor/machines/device_machine.h"
#include "executor/spec/run_spec.h"
#include "executor/stages/device/stage_data.h"
#include "executor/training/training_plan.h"

namespace plumb { inline namespace executor {

/// Uploads the tokens, samples and targets that a stage reads on a rank of the world in one step; nothing where it
/// reads none.
void upload_batch(DeviceMachine& machine, const StageData& stage, const RunSpec& spec, const TrainingPlan& training,
                  int rank, int step);

}}  // namespace plumb::executor
