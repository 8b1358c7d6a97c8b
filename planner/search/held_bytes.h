#pragma once
// The memory that a layout's compute actions hold at once, and whether it fits, without a simulation.
//
//   HeldBytes held(pricing);
//   held.of(layout);           // [rank], from the memory of its stages alone
//   held.shortfall(layout);    // rank 0 lacks 3.2 GiB

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/evaluate/priced_layout.h"
#include "planner/search/bounds.h"
#include "planner/spec/layout.h"
#include "planner/threads/memo.h"

namespace plumb { inline namespace planner {

/// Keeps what it has worked out of orders; no answer depends on earlier questions. Threads may ask at the same time.
class HeldBytes {
 public:
  /// `pricing` must outlive it.
  explicit HeldBytes(Pricing& pricing) : pricing_(pricing) {}

  /// Returns price_layout() of the layout in its order, whose facts are worked out once for all layouts that share it.
  PricedLayout price(const Layout& layout);

  /// [rank] the bytes that the layout holds at least (memory_in_issue_order). `priced` are its prices where they are at
  /// hand.
  std::vector<std::int64_t> of(const Layout& layout);
  std::vector<std::int64_t> of(const Layout& layout, const PricedLayout& priced);

  /// Returns by how much a layout without conflict does not fit (memory_in_issue_order, or a simulation where activations
  /// are offloaded); nothing if it does.
  std::optional<MemoryShortfall> shortfall(const Layout& layout);
  std::optional<MemoryShortfall> shortfall(const Layout& layout, const PricedLayout& priced);

 private:
  /// The facts of an order that estimates need, without its actions, which are many.
  struct OrderOfLayout {
    Schedule stages;  ///< without actions
    StageOrder prices;
    Memo<std::vector<int>, HeldOrder> held;  ///< [kind of stage]
  };
  Schedule order_that_shows(const Layout& layout) const;
  const OrderOfLayout& order_of_layout(const Layout& layout) const;
  std::optional<MemoryShortfall> shortfall_of(const Layout& layout, const std::vector<std::int64_t>& peaks) const;
  std::vector<std::int64_t> simulated(const Layout& layout, const PricedLayout& priced);

  Pricing& pricing_;
  Memo<std::pair<std::string, std::array<std::int64_t, 5>>, OrderOfLayout> orders_;
};

}}  // namespace plumb::planner
