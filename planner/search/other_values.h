#pragma once
// The cost of every other value of a key is told by the best layout with it, all other keys free.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {

struct SearchResult;

/// The best layout with a value of a key that the best of all has not.
struct OtherValue {
  std::string key;
  std::string value;
  std::optional<Evaluation> best;  ///< without its lowered schedule; nothing: none fits
  std::int64_t missing_bytes = 0;  ///< on the fullest rank of the closest layout, where none fits
};

/// Returns the answers by key and value. `best` is the best layout of the space, and `search` answers the best one of the
/// same space with one value of a key. Of a key with many numbers, powers of two are taken. Values with which no layout
/// exists are left out.
std::vector<OtherValue> other_values(Pricing& pricing, const LayoutSpace& space, const Layout& best,
                                     const std::function<SearchResult(const LayoutSpace& pinned)>& search);

}}  // namespace plumb::planner
