#pragma once
// `plumb plan` says two things of the layouts that are not the best: variants of a row, and other values of its keys.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/price/pricing.h"
#include "planner/search/search.h"

namespace plumb { inline namespace tools {

/// Returns the variants of a layout in a cell: "+3: v=8|4, zero=1"; empty where there are none.
std::string variants_text(const Layout& layout, const std::vector<Layout>& variants);

/// Returns a page with a line for each other value of each key: its best step, by how much it is longer, and the part
/// of the step that grows most.
std::string other_values_text(const Pricing& pricing, const SearchResult& search);
/// Returns a line for each kind of layout that cannot exist or that the framework does not run: the first one, and how
/// many others fail by the same keys.
std::string conflicts_text(const std::vector<Rejection>& conflicts);

nlohmann::ordered_json other_values_json(const Pricing& pricing, const SearchResult& search);

}}  // namespace plumb::tools
