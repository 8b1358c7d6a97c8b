#pragma once
// The communicators of a run, numbered in the order in which they come up, which is the same on every rank.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/groups/communicator_ranks.h"

namespace plumb { inline namespace executor {

class CommunicatorNumbers {
 public:
  /// Returns the number of the communicator with this purpose and these ranks, which is a new one on the first call.
  std::int32_t number_of(const std::string& name, const std::vector<int>& ranks, bool is_channel = false);

  std::vector<CommunicatorRanks> take() { return std::move(list_); }

 private:
  std::map<std::pair<std::string, std::vector<int>>, std::int32_t> numbers_;
  std::vector<CommunicatorRanks> list_;
};

}}  // namespace plumb::executor
