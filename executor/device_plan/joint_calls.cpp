#include "executor/device_plan/joint_calls.h"

#include <map>
#include <utility>

#include "schedules/joint_reductions.h"

namespace plumb {

std::vector<std::int32_t> joint_leaders(const Schedule& schedule) {
  const JointReductions joint = joint_reductions(schedule);
  std::vector<std::int32_t> leaders;
  std::map<int, int> unshards;                           // [stage] so far
  std::map<std::pair<int, int>, std::int32_t> first_of;  // (model part, how many came before)
  for (const std::vector<Action>& actions : schedule.ranks)
    for (const Action& action : actions) {
      const auto id = static_cast<std::int32_t>(leaders.size());
      leaders.push_back(id);
      if (joint.collective_of.empty()) continue;  // no stage has copies
      if (const std::int32_t of = joint.collective_of[static_cast<std::size_t>(id)]; of >= 0)
        leaders.back() = joint.members[static_cast<std::size_t>(of)].front();
      if (action.op != Op::kUnshard) continue;
      const int part = schedule.stages[static_cast<std::size_t>(action.stage)].model_part;
      leaders.back() = first_of.try_emplace({part, unshards[action.stage]++}, id).first->second;
    }
  return leaders;
}

bool is_order_of_joint_gathers(const Dependency& dependency, const std::vector<std::int32_t>& leaders) {
  const auto has_part = [&](std::int32_t id) {
    const std::int32_t leader = leaders[static_cast<std::size_t>(id)];
    return leader >= 0 && leader != id;
  };
  return dependency.reason == Reason::kChannel && (has_part(dependency.from) || has_part(dependency.to));
}

}  // namespace plumb
