#pragma once
// Which share of a GPU's multiprocessors (SMs) each rank has when several stages run on it (green contexts). The driver
// gives SMs in groups, of the same size and of one split: CUDA Driver API, "Green Contexts",
// cuDevSmResourceSplitByCount.

#include <optional>
#include <string>
#include <vector>

namespace plumb { inline namespace executor {

/// SMs of a group, the fewest that can be asked for: 8 from compute capability 9.0 on, 4 on 8.x.
int smallest_sm_group(int major);

struct SmSplit {
  std::vector<int> groups;  ///< [rank] at least 1 each; together at most those that there are
  std::string refused;      ///< why there are none; empty: there are
};

/// Shares out `groups` as near to `shares` as whole groups go: one each, the others one by one to the rank that is
/// furthest below its share (equal ones: the lowest rank; D'Hondt's method). `shares` empty: even.
/// Throws SpecError unless there is one share above 0 for each rank.
SmSplit split_multiprocessors(int ranks, const std::vector<int>& shares, int groups);

}}  // namespace plumb::executor
