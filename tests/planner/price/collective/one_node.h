#pragma once

#include "planner/price/collective/group_placement.h"

namespace plumb::test {

/// A group of all eight devices of a node.
inline constexpr GroupPlacement kOneNode{.ranks = 8, .nodes = 1, .ranks_per_node = 8};

}  // namespace plumb::test
