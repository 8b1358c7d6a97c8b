#pragma once
// The placement of schedules whose weights travel: every rank is a lane with all parts of the model, one for each rank.
// Micro-batch n runs on rank n mod p.

#include <vector>

#include "schedules/generators/catalogue.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Returns the stage that is a part of the model on a rank.
inline int travelling_stage(int ranks, int rank, int part) {
  return rank * ranks + part;
}

/// Returns a schedule of that name and placement without actions. Throws ScheduleError if its p^2 stages have more than
/// kMostForwards (limits.h) micro-batches together, which tables by stage and micro-batch hold.
Schedule travelling_schedule(std::string_view name, const ScheduleParameters& parameters);

/// Returns a message of a part's weights, or of their gradient, on `rank`, to or from `other`.
inline Action weight_message(Op op, int ranks, int part, int rank, int other) {
  return {.op = op, .stage = travelling_stage(ranks, rank, part), .peer = travelling_stage(ranks, other, part)};
}

}}  // namespace plumb::schedules
