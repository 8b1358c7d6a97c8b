#include "planner/spec/rank_order.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {

std::string_view rank_order_name(RankOrder order) {
  return rank_order_names()[static_cast<std::size_t>(order)];
}

const std::vector<std::string>& rank_order_names() {
  static const std::vector<std::string> kNames = {"tp-cp-dp-pp", "tp-cp-pp-dp"};
  return kNames;
}

RankOrder rank_order_from_name(std::string_view name) {
  const auto it = std::ranges::find(rank_order_names(), name);
  if (it == rank_order_names().end())
    throw SpecError(fmt::format("layout order={}: give {}", name, fmt::join(rank_order_names(), " or ")));
  return static_cast<RankOrder>(it - rank_order_names().begin());
}

}}  // namespace plumb::planner
