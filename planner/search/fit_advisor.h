#pragma once
// The advice for a layout that does not fit: the nearest change with which it does.
//
//   FitAdvisor advisor(pricing, space);
//   advisor.shortfall_of(layout);     // rank 0 lacks 3.2 GiB
//   advisor.nearest_change(layout);   // "recompute=full fits"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "planner/evaluate/priced_layout.h"
#include "planner/search/bounds.h"
#include "planner/spec/layout.h"
#include "planner/spec/layout_space.h"
#include "planner/threads/memo.h"

namespace plumb { inline namespace planner {

/// Keeps what it has worked out; no answer depends on earlier questions. Threads may ask for prices and shortfalls at the
/// same time.
class FitAdvisor {
 public:
  /// `pricing` must outlive it. No layout outside of the space is advised.
  FitAdvisor(Pricing& pricing, LayoutSpace space) : pricing_(pricing), space_(std::move(space)) {}

  /// Returns price_layout() of the layout in its order, whose facts are worked out once for all layouts that share it.
  PricedLayout price(const Layout& layout);

  /// [rank] the bytes that the layout holds at least (memory_in_issue_order).
  std::vector<std::int64_t> held_bytes(const Layout& layout, const PricedLayout& priced);
  std::vector<std::int64_t> held_bytes(const Layout& layout);

  /// Returns by how much a layout without conflict does not fit (memory_in_issue_order, or a simulation where activations
  /// are offloaded); nothing if it does. `priced` are its prices where they are at hand.
  std::optional<MemoryShortfall> shortfall_of(const Layout& layout);
  std::optional<MemoryShortfall> shortfall_of(const Layout& layout, const PricedLayout& priced);

  /// Returns the nearest change, as a clause. It is one key if possible, else the fewest of two or three: sequence
  /// parallelism, sharding, recomputation, smaller micro-batches, one chunk a rank, tensor or pipeline ranks in place of
  /// replicas. If these do not help it is another layout, and failing that the device memory or the number of devices
  /// that would suffice.
  std::string nearest_change(const Layout& layout);

 private:
  /// The facts of an order that estimates need, without its actions, which are many.
  struct OrderOfLayout {
    Schedule stages;  ///< without actions
    StageOrder prices;
    Memo<std::vector<int>, HeldOrder> held;  ///< [kind of stage]
  };
  Schedule order_that_shows(const Layout& layout) const;
  const OrderOfLayout& order_of_layout(const Layout& layout) const;
  bool fits(const Layout& layout);
  std::optional<std::string> changes_that_fit(const Layout& layout, const std::string& before, int count);
  std::string other_layout_or_cluster();

  Pricing& pricing_;
  LayoutSpace space_;
  Memo<std::string, std::optional<MemoryShortfall>> shortfalls_;  ///< by the layout's text
  Memo<std::pair<std::string, std::array<std::int64_t, 5>>, OrderOfLayout> orders_;
  std::optional<std::string> other_;
};

}}  // namespace plumb::planner
