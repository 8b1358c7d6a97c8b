#pragma once
// Says what `plumb plan --schedule search` gained on the best layout's order.

#include <string>

#include <nlohmann/json.hpp>

#include "planner/search/searched_order.h"

namespace plumb { inline namespace tools {

/// Returns lines like
///   its order, searched for its own costs (1f1b's stages and memory): 6.10 s, 3.79 % less than 6.34 s
///   no order of its compute within that memory takes less than 5.98 s; what binds is the work of rank 0
std::string searched_order_text(const SearchedOrder& searched);

nlohmann::ordered_json searched_order_json(const SearchedOrder& searched);

}}  // namespace plumb::tools
