#pragma once
// The steps of many layouts where every transfer has its links to itself. Layouts that share an order share its
// compiled steps, so that one more of them takes a pass over these.
//
//   OwnLinksSteps steps(training);
//   steps.of(layout, price_layout(pricing, layout, schedule)).makespan

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "planner/evaluate/priced_layout.h"
#include "planner/spec/layout.h"
#include "planner/spec/training_spec.h"
#include "simulator/repeating_times.h"

namespace plumb { inline namespace planner {

/// Returns the layout's order with what moves between ranks, for any number of micro-batches. `buckets` are those of
/// each stage (buckets_by_stage() in evaluate/priced_layout.h).
RepeatingSchedule repeating_order(const TrainingSpec& training, const Layout& layout, const std::vector<int>& buckets);

/// Returns the mean time for which the ranks of a step compute.
SimTime mean_busy(const TimedStep& step);

class OwnLinksSteps {
 public:
  /// `training` must outlive it.
  explicit OwnLinksSteps(const TrainingSpec& training) : training_(training) {}

  /// Returns the times of evaluate_sums() (evaluate/evaluation.h). Threads may ask at the same time. Throws as
  /// evaluate_sums() does.
  TimedStep of(const Layout& layout, const PricedLayout& priced);

 private:
  /// An order is decided by the schedule; pp, v, group, micro-batches, ZeRO, whether there are replicas and whether
  /// activations are offloaded; the buckets.
  using OrderKey = std::tuple<std::string, std::array<std::int64_t, 7>, std::vector<int>>;
  std::shared_ptr<RepeatingTimes> order_of(const Layout& layout, const std::vector<int>& buckets);

  const TrainingSpec& training_;
  std::mutex mutex_;
  std::map<OrderKey, std::shared_ptr<RepeatingTimes>> orders_;
};

}}  // namespace plumb::planner
