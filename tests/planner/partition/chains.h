#pragma once
// Chains of layers that the tests share.

#include <vector>

#include "planner/partition/chain_partition.h"

namespace plumb::test {

/// Returns the chain whose nodes take these times and nothing else.
inline Chain chain_of_times(const std::vector<double>& seconds) {
  Chain chain;
  for (const double time : seconds) chain.seconds.emplace_back(time);
  return chain;
}

}  // namespace plumb::test
