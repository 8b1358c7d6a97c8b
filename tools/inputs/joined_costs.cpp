#include "tools/inputs/joined_costs.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace tools {
namespace {

/// Returns the parts that a stage of the placement joins: the first, and how many.
std::pair<std::size_t, std::size_t> joined_parts(const StagePlace& place, const NamedPlacement& placement,
                                                 std::size_t parts) {
  std::size_t of_lane = 0;
  for (const StagePlace& other : placement.stages) of_lane += other.lane == 0 ? 1 : 0;
  return {static_cast<std::size_t>(place.model_part) * parts / of_lane, parts / of_lane};
}

/// Returns the sums of stages that join neighbouring parts of the model, lane by lane.
template <typename Number>
std::vector<Number> joined(const std::vector<Number>& costs, std::size_t parts, const NamedPlacement& placement) {
  if (costs.size() != 1 && costs.size() != parts) {
    throw SpecError(
        fmt::format("--costs has a list of {} entries for {} parts of the model, which are -p times -v: "
                    "give one, or one for each",
                    costs.size(), parts));
  }
  std::vector<Number> sums;
  for (const StagePlace& place : placement.stages) {
    const auto [first, count] = joined_parts(place, placement, parts);
    Number sum{0};
    for (std::size_t part = first; part < first + count; ++part) sum += costs[costs.size() == 1 ? 0 : part];
    sums.push_back(sum);
  }
  return sums;
}

/// Returns the messages of such stages: that of the last part of each.
std::vector<double> joined_messages(const std::vector<double>& bytes, std::size_t parts,
                                    const NamedPlacement& placement) {
  if (bytes.size() <= 1) return bytes;
  std::vector<double> last;
  for (const StagePlace& place : placement.stages) {
    const auto [first, count] = joined_parts(place, placement, parts);
    last.push_back(bytes[first + count - 1]);
  }
  return last;
}

}  // namespace

CostsOption joined_costs(CostsOption costs, std::size_t parts, const NamedPlacement& placement) {
  for (std::vector<Seconds>* list : {&costs.chunk.forward, &costs.chunk.input_grad, &costs.chunk.weight_grad}) {
    *list = joined(*list, parts, placement);
  }
  if (costs.whole_backward) costs.chunk.backward = joined(costs.chunk.backward, parts, placement);
  if (costs.chunk.recompute.size() > 1) costs.chunk.recompute = joined(costs.chunk.recompute, parts, placement);
  costs.message_bytes = joined_messages(costs.message_bytes, parts, placement);
  if (costs.memory.activation_bytes.empty()) return costs;
  costs.memory.activation_bytes = joined(costs.memory.activation_bytes, parts, placement);
  costs.memory.released_at_input_grad_bytes = joined(costs.memory.released_at_input_grad_bytes, parts, placement);
  return costs;
}

}}  // namespace plumb::tools
