#pragma once
// The order of actions that a layout names, and the same with what moves between ranks.

#include <vector>

#include "planner/spec/layout.h"
#include "planner/spec/training_spec.h"
#include "schedules/passes/passes.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

/// Returns the compute order that the layout names, for the training's micro-batches or for a given number of them.
/// Throws ScheduleError if the schedule cannot be made with its numbers, SpecError if the micro-batches do not divide
/// the batch.
Schedule order_of(const TrainingSpec& training, const Layout& layout);
Schedule order_of(const Layout& layout, int microbatches);

/// Micro-batches after which the middle of the layout's order repeats (schedules/generators/catalogue.h); 0 if it does
/// not.
int order_period(const TrainingSpec& training, const Layout& layout);

/// Returns an order with the same stages, operations, and activations that its ranks hold at once: a few periods of one
/// that repeats.
Schedule short_order_of(const TrainingSpec& training, const Layout& layout);

/// Returns the order with messages, data-parallel actions and optimizer steps. `buckets` are those of each stage
/// (buckets_by_stage() in evaluate/priced_layout.h).
Schedule lowered_for(const Layout& layout, const Schedule& order, const std::vector<int>& buckets,
                     Receives receives = Receives::kEarly);

}}  // namespace plumb::planner
