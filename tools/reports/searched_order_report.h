#pragma once
// Says what `plumb plan --schedule search` gained on the best layout's order.

#include <string>

#include <nlohmann/json.hpp>

#include "planner/search/searched_order.h"

namespace plumb { inline namespace tools {

/// Returns lines like
///   its order, searched for its own costs with as many activations: 6.10 s, 3.79 % less than the 6.34 s of 1f1b
///   its compute takes 6.02 s, and no order with such backwards takes less than 5.98 s there; what binds is ...
std::string searched_order_text(const SearchedOrder& searched);

nlohmann::ordered_json searched_order_json(const SearchedOrder& searched);

}}  // namespace plumb::tools
