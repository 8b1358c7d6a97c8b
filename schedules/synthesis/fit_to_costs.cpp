#include "schedules/synthesis/fit_to_costs.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/liveness.h"
#include "schedules/synthesis/local_search.h"
#include "schedules/synthesis/order_search.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr double kTimedActions = 3e8;  // over all searches
constexpr int kFloatingSearches = 10;
constexpr int kLocalSearches = 5;
constexpr std::size_t kSearchedCandidates = 3;
constexpr double kMostSteps = 40'000;
constexpr int kFewestSteps = 200;  // fewer find nothing in so long an order

struct FittedOrder {
  Schedule schedule;
  std::int64_t span = 0;
};

}  // namespace

std::int64_t most_work(const Schedule& schedule, const OrderCosts& costs) {
  const OrderGraph graph(schedule, costs);
  std::int64_t most = 0;
  for (const std::vector<std::int32_t>& order : graph.listed) {
    std::int64_t work = 0;
    for (const std::int32_t id : order) work += graph.durations[id];
    most = std::max(most, work);
  }
  return most;
}

Schedule fit_to_costs(const std::vector<Schedule>& candidates, const OrderCosts& costs, int rank_limit,
                      std::int64_t goal) {
  std::vector<FittedOrder> found;
  for (const Schedule& schedule : candidates) {
    const bool fits = rank_limit == 0 ||
                      std::ranges::all_of(liveness(schedule),
                                          [rank_limit](const RankLiveness& rank) { return rank.peak <= rank_limit; });
    if (fits) found.push_back({schedule, longest_span(schedule, costs)});
  }
  if (found.empty()) {
    throw ScheduleError(
        fmt::format("no order within {} activations on a rank is known to begin with: raise the limit", rank_limit));
  }
  std::ranges::stable_sort(found, {}, &FittedOrder::span);
  FittedOrder best = found.front();
  goal = std::max(goal, most_work(best.schedule, costs));
  const double actions = static_cast<double>(action_count(best.schedule));
  const int steps = static_cast<int>(
      std::min(kTimedActions / (kFloatingSearches + kLocalSearches) / std::max(actions, 1.0), kMostSteps));
  if (steps < kFewestSteps) return best.schedule;

  constexpr std::array kGaps = {1.0, 0.75, 0.5, 0.25, 0.0};
  constexpr std::array kThresholds = {0.16, 0.33, 0.1};
  for (int i = 0; i < kFloatingSearches && best.span > goal; ++i) {
    const FittedOrder& start =
        i < kFloatingSearches / 2 ? found[i % std::min(found.size(), kSearchedCandidates)] : best;
    FoundOrder order = search_order(start.schedule, costs,
                                    {.steps = steps,
                                     .seed = static_cast<std::uint64_t>(i + 1),
                                     .rank_limit = rank_limit,
                                     .least_gap_ratio = kGaps[i % kGaps.size()],
                                     .first_threshold = kThresholds[i % kThresholds.size()],
                                     .goal = goal});
    if (order.span >= 0 && order.span < best.span) best = {std::move(order.schedule), order.span};
  }
  for (int i = 0; i < kLocalSearches && best.span > goal; ++i) {
    best.schedule = shorten_span(
        best.schedule, costs,
        {.steps = steps, .seed = static_cast<std::uint64_t>(i + 1), .rank_limit = rank_limit, .goal = goal});
    best.span = longest_span(best.schedule, costs);
  }
  return best.schedule;
}

}}  // namespace plumb::schedules
