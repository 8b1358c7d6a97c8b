#include "simulator/network/engine/collective_meetings.h"

namespace plumb { inline namespace simulator {

CollectiveMeetings::CollectiveMeetings(const Schedule& schedule, const EventProgram& program,
                                       const NetworkSpec& network)
    : program_(program),
      network_(network),
      stages_(schedule.stages.size()),
      group_of_(2 * stages_ * network.replicas, -1),
      missing_inside_(kLanes * network.inner.size(), 0) {
  for (std::size_t g = 0; g < network.collectives.size(); ++g) {
    const CollectiveFlow& flow = network.collectives[g];
    for (const int replica : flow.replicas) group_of_[slot(flow.op, flow.stage, replica)] = static_cast<int>(g);
  }
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions)
      slot_of_action_.push_back(is_collective(action.op) ? slot(action.op, action.stage, 0) : 0);
  }
  if (network.collectives.empty()) return;
  missing_.assign(static_cast<std::size_t>(program.actions) * network.replicas, 0);
  for (std::int32_t a = 0; a < program.actions; ++a) {
    if (program.kind[a] != EventKind::kCollective) continue;
    for (int k = 0; k < network.replicas; ++k) {
      const std::int32_t instance = k * program.actions + a;
      const int g = group_of(instance);
      if (g < 0 || network.collectives[g].replicas.front() != k) continue;
      missing_[instance] = static_cast<std::int32_t>(network.collectives[g].replicas.size());
    }
  }
}

/// Returns the slot of a collective by replica, operation and stage.
std::size_t CollectiveMeetings::slot(Op op, int stage, int replica) const {
  return (static_cast<std::size_t>(replica) * 2 + (op == Op::kReduceGrad ? 1 : 0)) * stages_ + stage;
}

int CollectiveMeetings::group_of(std::int32_t instance) const {
  return group_of_[slot_of_action_[action_of(program_, instance)] +
                   2 * stages_ * static_cast<std::size_t>(replica_of(program_, instance))];
}

bool CollectiveMeetings::come(int group, std::int32_t instance) {
  const int first = network_.collectives[group].replicas.front();
  return --missing_[first * program_.actions + action_of(program_, instance)] == 0;
}

bool CollectiveMeetings::come_inside(std::int32_t number, LaneKind lane) {
  std::int32_t& missing = missing_inside_[kLanes * static_cast<std::size_t>(number) + static_cast<std::size_t>(lane)];
  if (missing == 0) missing = static_cast<std::int32_t>(network_.inner[number].replicas.size());
  return --missing == 0;
}

}}  // namespace plumb::simulator
