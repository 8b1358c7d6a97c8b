#pragma once
// The shortest order of few stages and micro-batches, on any placement of one lane, by branch and bound.

#include <cstdint>
#include <functional>

#include "schedules/bounds/order_question.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct ExactOrder {
  Schedule schedule;         ///< without lists where nothing below the given time was found
  std::int64_t time = 0;     ///< of the question's objective
  bool is_complete = false;  ///< all orders were looked at: none in which micro-batches ascend is shorter
  std::int64_t nodes = 0;    ///< partial orders that were looked at
};

struct ExactEffort {
  std::int64_t most_nodes = 200'000;
  std::function<bool()> is_stopped;  ///< ends the search early where it gives true; may be empty
};

/// True if all micro-batches take one way through the stages (no copies in other directions), no overlapped pair takes
/// less time than its two actions, and no message waits for another.
bool is_searchable_exactly(const OrderQuestion& question);

/// Returns the shortest order below `most_time`, or none, as far as the effort goes. Partial orders are
/// continued by the rule of Giffler and Thompson (1960), which meets a shortest order: the next action is one
/// that could start before the first end of any that could be next. Where that first one is a forward whose memory
/// another stage of its rank may need, orders in which it is not the next of its rank are continued as well. A partial
/// order ends where its work and ways left take `most_time`, or where another one with the same actions has all of its
/// ranks and messages ready as early. On each stage micro-batches ascend, with all slices of one before those of the
/// next: they cost the same, so that those of any order can be renumbered by stage without a later start, and no
/// makespan is longer for it. (Before its n-th backward with k slices, a stage of any order has run all forwards of
/// n/k micro-batches, rounded up: a micro-batch goes back when its last slice has come.) Deterministic unless it is stopped.
/// Throws ScheduleError if the question is none that is_searchable_exactly().
ExactOrder exact_order(const OrderQuestion& question, std::int64_t most_time, const ExactEffort& effort = {});

}}  // namespace plumb::schedules
