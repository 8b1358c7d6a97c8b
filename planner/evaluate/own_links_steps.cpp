#include "planner/evaluate/own_links_steps.h"

#include <utility>

#include "planner/evaluate/layout_order.h"
#include "planner/spec/rank_layout.h"

namespace plumb { inline namespace planner {
namespace {

/// Compiled steps that are kept, of 12 bytes each. When there are more, all are forgotten.
constexpr std::int64_t kMostKeptSteps = 4'000'000;

}  // namespace

RepeatingSchedule repeating_order(const TrainingSpec& training, const Layout& layout, const std::vector<int>& buckets) {
  return {
      .lowered = [layout, buckets](
                     int microbatches) { return lowered_for(layout, plumb::order_of(layout, microbatches), buckets); },
      .microbatches = static_cast<int>(microbatches_of(training, layout)),
      .period = order_period(training, layout)};
}

SimTime mean_busy(const TimedStep& step) {
  SimTime all{0};
  for (const SimTime rank : step.busy) all += rank;
  return all / static_cast<std::int64_t>(step.busy.size());
}

TimedStep OwnLinksSteps::of(const Layout& layout, const PricedLayout& priced) {
  return order_of(layout, buckets_by_stage(priced))->of(cost_table(priced));
}

std::shared_ptr<RepeatingTimes> OwnLinksSteps::order_of(const Layout& layout, const std::vector<int>& buckets) {
  OrderKey key{layout.schedule,
               {layout.pipeline, layout.chunks, layout.group, microbatches_of(training_, layout), layout.zero,
                has_replicas(layout) ? 1 : 0, layout.offload.activations ? 1 : 0},
               buckets};
  const std::lock_guard searching(mutex_);
  if (const auto known = orders_.find(key); known != orders_.end()) return known->second;
  std::int64_t kept = 0;
  for (const auto& [other, times] : orders_) kept += times->kept_steps();
  if (kept > kMostKeptSteps) orders_.clear();
  auto times = std::make_shared<RepeatingTimes>(repeating_order(training_, layout, buckets));
  return orders_.emplace(std::move(key), std::move(times)).first->second;
}

}}  // namespace plumb::planner
