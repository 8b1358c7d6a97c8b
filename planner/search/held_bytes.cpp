#include "planner/search/held_bytes.h"

#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/host_offload.h"
#include "planner/evaluate/layout_order.h"

namespace plumb { inline namespace planner {

Schedule HeldBytes::order_that_shows(const Layout& layout) const {
  // A few periods hold as much at once as all; what is moved away comes back out of the order of issue.
  return layout.offload.activations ? order_of(pricing_.training(), layout)
                                    : short_order_of(pricing_.training(), layout);
}

const HeldBytes::OrderOfLayout& HeldBytes::order_of_layout(const Layout& layout) const {
  const std::int64_t microbatches = microbatches_of(pricing_.training(), layout);
  return orders_.of({layout.schedule,
                     {layout.pipeline, layout.chunks, layout.group, layout.offload.activations ? 1 : 0, microbatches}},
                    [&] {
                      Schedule order = order_that_shows(layout);
                      OrderOfLayout facts;
                      facts.prices = stage_order(order);
                      facts.stages = {.name = order.name, .stages = std::move(order.stages)};
                      return facts;
                    });
}

PricedLayout HeldBytes::price(const Layout& layout) {
  const OrderOfLayout& order = order_of_layout(layout);
  return price_layout(pricing_, layout, order.stages, order.prices);
}

std::vector<std::int64_t> HeldBytes::of(const Layout& layout, const PricedLayout& priced) {
  const HeldOrder& held = order_of_layout(layout).held.of(priced.kind_of_stage, [&] {
    return held_order(with_offload(order_that_shows(layout), layout), priced.kind_of_stage);
  });
  return memory_in_issue_order(priced.kinds, held);
}

std::vector<std::int64_t> HeldBytes::of(const Layout& layout) {
  const OrderOfLayout& order = order_of_layout(layout);
  return of(layout, hold_layout(pricing_, layout, order.stages, order.prices));
}

/// Activations stay on the device until they are away, which only a simulation tells.
std::vector<std::int64_t> HeldBytes::simulated(const Layout& layout, const PricedLayout& priced) {
  return evaluate(pricing_, layout, priced, {.simulation = {.record_timeline = false}, .network = NetworkOptions{}})
      .simulation.peak_memory_bytes;
}

std::optional<MemoryShortfall> HeldBytes::shortfall_of(const Layout& layout,
                                                       const std::vector<std::int64_t>& peaks) const {
  return memory_shortfall(peaks, pricing_.cluster(), layout, pricing_.memory_headroom(layout));
}

std::optional<MemoryShortfall> HeldBytes::shortfall(const Layout& layout) {
  return shortfall_of(layout, layout.offload.activations ? simulated(layout, price(layout)) : of(layout));
}

std::optional<MemoryShortfall> HeldBytes::shortfall(const Layout& layout, const PricedLayout& priced) {
  return shortfall_of(layout, layout.offload.activations ? simulated(layout, priced) : of(layout, priced));
}

}}  // namespace plumb::planner
