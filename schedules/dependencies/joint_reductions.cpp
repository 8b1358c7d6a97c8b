#include "schedules/dependencies/joint_reductions.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace plumb { inline namespace schedules {

JointReductions joint_reductions(const Schedule& schedule) {
  JointReductions joint;
  if (!has_copies(schedule)) return joint;

  joint.collective_of.reserve(static_cast<std::size_t>(action_count(schedule)));
  std::map<std::pair<int, int>, int> listed;                     // by (stage, part): REDUCE_GRADs so far
  std::map<std::tuple<int, int, int>, std::int32_t> collective;  // by (model part, part, how many came before)
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      const auto id = static_cast<std::int32_t>(joint.collective_of.size());
      joint.collective_of.push_back(-1);
      if (action.op != Op::kReduceGrad) continue;
      const int before = listed[{action.stage, action.part}]++;
      const auto [found, is_new] =
          collective.try_emplace({schedule.stages[action.stage].model_part, action.part, before},
                                 static_cast<std::int32_t>(joint.members.size()));
      if (is_new) joint.members.emplace_back();
      joint.members[found->second].push_back(id);
      joint.collective_of.back() = found->second;
    }
  }
  return joint;
}

ReductionQueues::ReductionQueues(const Schedule& schedule, const ActionIds& ids, const JointReductions& joint)
    : ids_(ids), joint_(joint), queues_(schedule.ranks.size()) {}

std::vector<std::int32_t> ReductionQueues::issue(std::int32_t id) {
  queue_of(id).issued.push_back(id);
  std::vector<std::int32_t> running;
  std::vector<std::int32_t> candidates{joint_.collective_of[id]};
  while (!candidates.empty()) {
    const std::int32_t collective = candidates.back();
    candidates.pop_back();
    if (!may_run(collective)) continue;
    running.push_back(collective);
    for (const std::int32_t member : joint_.members[collective]) ++queue_of(member).head;
    for (const std::int32_t member : joint_.members[collective]) {
      const Queue& queue = queue_of(member);
      if (queue.head < queue.issued.size()) candidates.push_back(joint_.collective_of[queue.issued[queue.head]]);
    }
  }
  return running;
}

bool ReductionQueues::empty() const {
  return std::ranges::all_of(queues_, [](const Queue& queue) { return queue.head == queue.issued.size(); });
}

/// True if the action is issued, and only members of its own collective stand ahead of it on its rank.
bool ReductionQueues::is_at_head(std::int32_t id) {
  const Queue& queue = queue_of(id);
  for (std::size_t i = queue.head; i < queue.issued.size(); ++i) {
    if (queue.issued[i] == id) return true;
    if (joint_.collective_of[queue.issued[i]] != joint_.collective_of[id]) return false;
  }
  return false;
}

bool ReductionQueues::may_run(std::int32_t collective) {
  return std::ranges::all_of(joint_.members[collective], [this](std::int32_t member) { return is_at_head(member); });
}

}}  // namespace plumb::schedules
