#include "schedules/synthesis/fit_to_costs.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/synthesis/local_search.h"
#include "schedules/synthesis/order_search.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr int kFloatingSearches = 10;
constexpr int kLocalSearches = 5;
constexpr std::size_t kSearchedCandidates = 3;
constexpr double kMostSteps = 40'000;
constexpr int kFewestSteps = 200;  // fewer find nothing in so long an order

Schedule without_pairs(Schedule order) {
  for (std::vector<Action>& list : order.ranks) {
    for (Action& action : list) action.overlaps_next = false;
  }
  return order;
}

}  // namespace

FittedOrder fit_to_costs(const std::vector<Schedule>& candidates, const OrderQuestion& question,
                         const FitEffort& effort) {
  std::vector<FittedOrder> found;
  for (const Schedule& schedule : candidates) {
    if (fits_memory(question, schedule)) found.push_back({schedule, order_time(schedule, question)});
  }
  if (found.empty()) throw ScheduleError("no order within the memory is known to begin with: give the ranks more");
  std::ranges::stable_sort(found, {}, &FittedOrder::time);
  FittedOrder best = found.front();
  const double actions = static_cast<double>(action_count(best.schedule));
  const int steps = static_cast<int>(
      std::min(effort.timed_actions / (kFloatingSearches + kLocalSearches) / std::max(actions, 1.0), kMostSteps));
  if (steps < kFewestSteps) return best;

  const auto is_over = [&] { return best.time <= effort.goal || (effort.is_stopped && effort.is_stopped()); };
  constexpr std::array kGaps = {1.0, 0.75, 0.5, 0.25, 0.0};
  constexpr std::array kThresholds = {0.16, 0.33, 0.1};
  for (int i = 0; i < kFloatingSearches && !is_over(); ++i) {
    const FittedOrder& start =
        i < kFloatingSearches / 2 ? found[i % std::min(found.size(), kSearchedCandidates)] : best;
    FoundOrder order = search_order(without_pairs(start.schedule), question,
                                    {.steps = steps,
                                     .seed = static_cast<std::uint64_t>(i + 1),
                                     .least_gap_ratio = kGaps[i % kGaps.size()],
                                     .first_threshold = kThresholds[i % kThresholds.size()],
                                     .goal = effort.goal,
                                     .is_stopped = effort.is_stopped});
    if (order.time >= 0 && order.time < best.time) best = {std::move(order.schedule), order.time};
  }
  for (int i = 0; i < kLocalSearches && !is_over(); ++i) {
    best.schedule = shorten_order(best.schedule, question,
                                  {.steps = steps,
                                   .seed = static_cast<std::uint64_t>(i + 1),
                                   .goal = effort.goal,
                                   .is_stopped = effort.is_stopped});
    best.time = order_time(best.schedule, question);
  }
  return best;
}

}}  // namespace plumb::schedules
