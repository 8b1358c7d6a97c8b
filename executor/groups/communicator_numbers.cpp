#include "executor/groups/communicator_numbers.h"

namespace plumb { inline namespace executor {

std::int32_t CommunicatorNumbers::number_of(const std::string& name, const std::vector<int>& ranks, bool is_channel) {
  const auto [it, is_new] = numbers_.try_emplace({name, ranks}, static_cast<std::int32_t>(list_.size()));
  if (is_new) list_.push_back({name, ranks, is_channel});
  return it->second;
}

}}  // namespace plumb::executor
