#pragma once
// A search over the order of F and I on each rank, with weight gradients that run where they fit (floating_order.h).
// There are far fewer orders than with W among them, and none that is worse for a W in the wrong place.

#include <cstdint>
#include <functional>

#include "schedules/bounds/order_question.h"
#include "schedules/schedule.h"
#include "schedules/synthesis/order_graph.h"

namespace plumb { inline namespace schedules {

struct OrderSearch {
  int steps = 20'000;  ///< orders that are tried
  std::uint64_t seed = 1;
  double least_gap_ratio = 1;    ///< GapRule of every rank to begin with
  double first_threshold = 0.2;  ///< how much worse an order may be at first, in shares of one F, I and W
  std::int64_t goal = 0;         ///< a time that is short enough
  std::function<bool()>
      is_stopped;  ///< asked now and then, and ends the search early where it gives true; may be empty
};

struct FoundOrder {
  Schedule schedule;
  std::int64_t time = -1;  ///< of the question's objective; -1 if the search could not begin within the memory
};

/// Returns the schedule of the shortest time met by threshold accepting (Dueck & Scheuer 1990), from the
/// schedule's own order on. A step moves an action of a path that ends late, once or wherever its list has
/// the same two kinds of action that far apart, or changes how a rank fills its gaps. Micro-batches stay in
/// ascending order by stage and direction, and the slices of each ascend forth and descend back. Deterministic for a
/// seed. Throws ScheduleError for pairs and other actions than F, B, I and W.
FoundOrder search_order(const Schedule& schedule, const OrderQuestion& question, const OrderSearch& search);

}}  // namespace plumb::schedules
