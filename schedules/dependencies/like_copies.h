#pragma once
// Copies of stages (of one model part, on different ranks) that share their state with ZeRO 2 or 3 meet at every
// gradient, and at every gather of weights. They can do so without waiting in a circle if their ranks do the same in
// the same order, as in bidirectional schedules with an even number of micro-batches: rank r and rank p-1-r then are at
// the same place of their lists at the same time.

#include <string>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Why copies cannot share gradients (and, with `weights`, parameters): a sentence without its end, with the place and
/// a remedy; empty if they can, or where no stage has copies. Compared are the compute actions but for OPTIMIZER_STEP
/// (and R, unless `weights`), REDUCE_GRAD and RESHARD, by model part and slice.
std::string why_copies_cannot_share(const Schedule& schedule, bool weights);

}}  // namespace plumb::schedules
