#pragma once
// The share of a GPU's multiprocessors (SMs) for each rank when several stages run on it (green contexts). The driver
// gives SMs in groups of equal size, all from one split: CUDA Driver API, "Green Contexts",
// cuDevSmResourceSplitByCount.

#include <optional>
#include <string>
#include <vector>

namespace plumb { inline namespace executor {

/// Returns the fewest SMs of a group that can be asked for: 8 from compute capability 9.0 on, 4 on 8.x.
int smallest_sm_group(int major);

struct SmSplit {
  std::vector<int> groups;  ///< [rank] at least 1 each, and in total at most the groups that exist
  std::string refused;      ///< the reason why there is no split; empty: there is one
};

/// Divides `groups` in proportion to `shares`, as nearly as whole groups allow. Each rank gets one; the others go one
/// by one to the rank that is furthest below its share (of equal ones, the lowest rank; D'Hondt's method). Empty
/// `shares` divide evenly. Throws SpecError unless there is one share above 0 for each rank.
SmSplit split_multiprocessors(int ranks, const std::vector<int>& shares, int groups);

}}  // namespace plumb::executor
