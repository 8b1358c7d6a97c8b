#include "planner/evaluate/layout_order.h"

#include <optional>

#include "planner/evaluate/host_offload.h"
#include "planner/spec/rank_layout.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"

namespace plumb { inline namespace planner {
namespace {

ScheduleParameters parameters_of(const Layout& layout, int microbatches) {
  return {.ranks = layout.pipeline, .microbatches = microbatches, .chunks = layout.chunks, .group = layout.group};
}

/// Micro-batches of an order that shows what one of so many does.
int enough_periods(int microbatches, int period) {
  constexpr int kPeriods = 8;
  return period == 0 || microbatches / period <= kPeriods ? microbatches : kPeriods * period + microbatches % period;
}

}  // namespace

Schedule order_of(const Layout& layout, int microbatches) {
  return make_schedule(layout.schedule, parameters_of(layout, microbatches));
}

Schedule order_of(const TrainingSpec& training, const Layout& layout) {
  return order_of(layout, static_cast<int>(microbatches_of(training, layout)));
}

int order_period(const TrainingSpec& training, const Layout& layout) {
  return period_of(layout.schedule, parameters_of(layout, static_cast<int>(microbatches_of(training, layout))));
}

Schedule short_order_of(const TrainingSpec& training, const Layout& layout) {
  const auto microbatches = static_cast<int>(microbatches_of(training, layout));
  return order_of(layout, enough_periods(microbatches, order_period(training, layout)));
}

Schedule lowered_for(const Layout& layout, const Schedule& order, const std::vector<int>& buckets, Receives receives) {
  return lower(order, {.offload = layout.offload.activations ? std::optional(kKeptActivations) : std::nullopt,
                       .data = {.enabled = has_replicas(layout), .zero = layout.zero, .buckets = buckets},
                       .receives = receives});
}

}}  // namespace plumb::planner
