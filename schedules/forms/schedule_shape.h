#pragma once
// Infers from a bare list of actions which rank owns which stage, and how many micro-batches there are.

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Fills `stages` and `microbatches` from `ranks`. Stages have one lane and model_part = stage; each lies on the rank
/// that lists most of its compute actions, the first of equals. `microbatches` is the number of forwards that most
/// stages list, the larger of equals. Mistakes in the list are left for validate to name: a stage that nobody computes
/// gets rank -1. Throws ScheduleError if an action names a stage beyond a million (no file of that kind can hold them
/// all).
void infer_shape(Schedule& schedule);

}}  // namespace plumb::schedules
