#include "executor/program/device/joint_calls.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "schedules/dependencies/joint_reductions.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

bool meets_copies(Op op, JointPasses passes) {
  if (passes == JointPasses::kWeightGrads) return gives_weight_gradient(op);
  return passes == JointPasses::kAll && is_compute(op) && op != Op::kOptimizerStep;
}

/// Joins the k-th such pass of each copy of a stage.
void join_passes(std::vector<std::int32_t>& leaders, const Schedule& schedule, JointPasses passes) {
  std::map<int, int> before;                                                // [stage] number of such passes so far
  std::map<std::pair<int, int>, std::pair<std::int32_t, Action>> first_of;  // (model part, number of passes before)
  std::vector<std::int32_t> pairs(leaders.size());  // [action id] the first action of its overlapped pair
  std::int32_t id = 0;
  for (const std::vector<Action>& actions : schedule.ranks) {
    bool is_second = false;
    for (const Action& action : actions) {
      pairs[static_cast<std::size_t>(id)] = is_second ? id - 1 : id;
      is_second = action.overlaps_next;
      if (meets_copies(action.op, passes)) {
        const int part = schedule.stages[static_cast<std::size_t>(action.stage)].model_part;
        const auto& [leader, other] = first_of.try_emplace({part, before[action.stage]++}, id, action).first->second;
        if (other.op != action.op || other.part != action.part)
          throw ScheduleError(
              fmt::format("layer by layer the copies of model part {} meet in each pass, and {} meets {}: list their "
                          "passes alike, or gather whole stages",
                          part, to_text(action), to_text(other)));
        if (leader != id) leaders[static_cast<std::size_t>(id)] = pairs[static_cast<std::size_t>(leader)];
      }
      ++id;
    }
  }
  // Both actions of a pair go to the call that either of them belongs to.
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    const auto first = static_cast<std::size_t>(pairs[i]);
    if (first == i) continue;
    if (leaders[i] != static_cast<std::int32_t>(i))
      leaders[first] = leaders[i];
    else if (leaders[first] != pairs[i])
      leaders[i] = leaders[first];
  }
}

}  // namespace

std::vector<std::int32_t> joint_leaders(const Schedule& schedule, JointPasses passes) {
  const JointReductions joint = joint_reductions(schedule);
  std::vector<std::int32_t> leaders;
  std::map<int, int> unshards;                           // [stage] number so far
  std::map<std::pair<int, int>, std::int32_t> first_of;  // (model part, number of UNSHARDs before)
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
  if (passes != JointPasses::kNone && !joint.collective_of.empty()) join_passes(leaders, schedule, passes);
  return leaders;
}

bool is_order_of_joint_gathers(const Dependency& dependency, const std::vector<std::int32_t>& leaders) {
  const auto has_part = [&](std::int32_t id) {
    const std::int32_t leader = leaders[static_cast<std::size_t>(id)];
    return leader >= 0 && leader != id;
  };
  return dependency.reason == Reason::kChannel && (has_part(dependency.from) || has_part(dependency.to));
}

}}  // namespace plumb::executor
