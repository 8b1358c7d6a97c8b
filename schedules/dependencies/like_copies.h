#pragma once
// Copies of stages (of one model part, on different ranks) that share their state with ZeRO 2 or 3 meet at every
// gradient, and at every gather of weights. They can meet without a circle of waiting if their ranks do the same in the
// same order. Bidirectional schedules with an even number of micro-batches do: rank r and rank p-1-r are at the same
// place of their lists at the same time.

#include <string>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Returns why copies cannot share gradients (and, with `weights`, parameters): a sentence without its end, with the
/// place and a remedy. Returns an empty string if they can, or where no stage has copies. It compares, by model part
/// and slice, the compute actions but for OPTIMIZER_STEP (and R, unless `weights`), REDUCE_GRAD and RESHARD.
std::string why_copies_cannot_share(const Schedule& schedule, bool weights);

}}  // namespace plumb::schedules
