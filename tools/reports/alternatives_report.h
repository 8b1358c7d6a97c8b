#pragma once
// `plumb plan` says of the layouts that are not the best why they are slower, which are variants of a row, and what
// other values of its keys cost.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/price/pricing.h"
#include "planner/search/settings.h"

namespace plumb { inline namespace tools {

/// Returns the part of the step that grows most from the best layout to another one: "PP bubble 139 ms"; empty if none
/// grows.
std::string growth_text(const SearchedSetting& of_best, const Evaluation& best, const SearchedSetting& of_other,
                        const Evaluation& other);

/// Returns a line for each row that has variants: "2: v=8|4, zero=1 (3 layouts)".
std::string variants_text(const SearchResult& search);

/// Returns a page with a line for each other value of each key: its best step, by how much it is longer, and the part
/// of the step that grows most.
std::string other_values_text(const Pricing& pricing, const SearchResult& search);
/// Returns a line for each kind of layout that cannot exist or that the framework does not run: the first one, and how
/// many others fail by the same keys.
std::string conflicts_text(const std::vector<Rejection>& conflicts);

nlohmann::ordered_json other_values_json(const Pricing& pricing, const SearchResult& search);

}}  // namespace plumb::tools
