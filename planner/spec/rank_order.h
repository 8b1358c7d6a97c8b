#pragma once
// The order in which the ranks of a layout are placed on devices, fastest first. Megatron-LM places the replicas of a
// stage side by side, tp-cp-dp-pp; with --use-tp-pp-dp-mapping the stages of a replica, tp-cp-pp-dp.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace planner {

enum class RankOrder : std::uint8_t { kStagesApart, kReplicasApart };

/// Returns "tp-cp-dp-pp" or "tp-cp-pp-dp".
std::string_view rank_order_name(RankOrder order);

/// Returns both names.
const std::vector<std::string>& rank_order_names();

/// Throws SpecError if the text is neither of these names.
RankOrder rank_order_from_name(std::string_view name);

}}  // namespace plumb::planner
