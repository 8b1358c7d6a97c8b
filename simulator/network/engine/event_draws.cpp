#include "simulator/network/engine/event_draws.h"

#include <utility>

namespace plumb { inline namespace simulator {

EventDraws::EventDraws(const NoiseDraws& draws, const Schedule& lowered, const EventProgram& program,
                       std::vector<int> drawn_as)
    : draws_(draws), program_(program), drawn_as_(std::move(drawn_as)) {
  std::vector<const Action*> actions;
  for (const auto& rank : lowered.ranks) {
    for (const Action& action : rank) actions.push_back(&action);
  }
  for (std::int32_t a = 0; a < program.actions; ++a) {
    const std::int32_t joint = program.joint.collective_of.empty() ? -1 : program.joint.collective_of[a];
    const Action& first = *actions[joint < 0 ? a : program.joint.members[joint].front()];
    collective_.push_back(joint < 0 ? a : NoiseDraws::sum_of_copies(first.stage, first.part));
  }
}

double EventDraws::compute(std::int32_t instance) const {
  const std::int32_t action = action_of(program_, instance);
  return draws_.compute(replica_of(instance), program_.rank[action], action);
}

double EventDraws::transfer(std::int32_t instance) const {
  const std::int32_t action = action_of(program_, instance);
  return program_.kind[action] == EventKind::kCollective ? draws_.collective(collective_[action])
                                                         : draws_.transfer(replica_of(instance), action);
}

double EventDraws::inside(std::int32_t instance, std::int32_t stretch) const {
  // This number differs from every action's number and from those of sums over copies.
  const std::int64_t which = (static_cast<std::int64_t>(stretch) + 1) << 32 | static_cast<std::int64_t>(instance);
  return draws_.collective(which);
}

}}  // namespace plumb::simulator
