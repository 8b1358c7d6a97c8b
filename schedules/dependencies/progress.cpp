#include "schedules/dependencies/progress.h"

#include <deque>
#include <set>
#include <vector>

#include "schedules/dependencies/action_graph.h"
#include "schedules/dependencies/inputs.h"
#include "schedules/dependencies/joint_reductions.h"
#include "schedules/dependencies/weight_messages.h"

namespace plumb { inline namespace schedules {
namespace {

class Player {
 public:
  Player(const Schedule& schedule, const ActionTable& table)
      : schedule_(schedule),
        table_(table),
        ids_(action_ids(schedule)),
        neighbors_(stage_neighbors(schedule)),
        shards_(shards_of(schedule)),
        joint_(joint_reductions(schedule)),
        queues_(schedule, ids_, joint_),
        reduction_(schedule.stages.size(), ActionTable::kNone),
        done_(static_cast<std::size_t>(ids_.first_id.back()), false),
        cursor_(schedule.ranks.size(), 0) {}

  /// Runs ranks while any may move; a rank that moved wakes those that wait for its stages.
  bool play() {
    const std::vector<std::vector<int>> fed = ranks_fed_by();
    std::deque<int> awake;
    std::vector<bool> is_awake(cursor_.size(), true);
    for (int r = 0; r < static_cast<int>(cursor_.size()); ++r) awake.push_back(r);
    while (!awake.empty()) {
      const int r = awake.front();
      awake.pop_front();
      is_awake[r] = false;
      if (!advance(static_cast<std::size_t>(r))) continue;
      for (const int other : fed[r]) {
        if (!is_awake[other]) awake.push_back(other);
        is_awake[other] = true;
      }
    }
    for (std::size_t r = 0; r < cursor_.size(); ++r) {
      if (cursor_[r] < schedule_.ranks[r].size()) return false;
    }
    return queues_.empty();
  }

 private:
  /// Returns [rank] the other ranks that take inputs from its stages, or reduce gradients with them.
  std::vector<std::vector<int>> ranks_fed_by() const {
    std::vector<std::set<int>> fed(schedule_.ranks.size());
    for (std::size_t s = 0; s < schedule_.stages.size(); ++s) {
      for (const int neighbor : {neighbors_.predecessor[s], neighbors_.successor[s]}) {
        const int rank = schedule_.stages[s].rank;
        if (neighbor >= 0 && schedule_.stages[neighbor].rank != rank) fed[rank].insert(schedule_.stages[neighbor].rank);
      }
      if (shards_.any()) {
        for (const int stage : shards_.before[s]) fed[schedule_.stages[s].rank].insert(schedule_.stages[stage].rank);
        for (const int stage : shards_.behind[s]) fed[schedule_.stages[s].rank].insert(schedule_.stages[stage].rank);
      }
      for (const StagePlace& other : schedule_.stages) {
        const StagePlace& place = schedule_.stages[s];
        if (other.model_part == place.model_part && other.rank != place.rank) fed[place.rank].insert(other.rank);
      }
    }
    std::vector<std::vector<int>> lists;
    for (const std::set<int>& ranks : fed) lists.emplace_back(ranks.begin(), ranks.end());
    return lists;
  }

  /// Runs a rank as far as its inputs allow. True if it moved.
  bool advance(std::size_t r) {
    const std::vector<Action>& actions = schedule_.ranks[r];
    const std::size_t before = cursor_[r];
    std::size_t& i = cursor_[r];
    for (; i < actions.size(); ++i) {
      if (is_compute(actions[i].op)) {
        const bool pair = actions[i].overlaps_next && i + 1 < actions.size();
        if (!ready(actions[i]) || (pair && !ready(actions[i + 1]))) break;
        if (pair) finish(r, i++);
      }
      finish(r, i);
    }
    return i > before;
  }

  void finish(std::size_t r, std::size_t i) {
    const std::int32_t id = ids_.first_id[r] + static_cast<std::int32_t>(i);
    const Action& action = schedule_.ranks[r][i];
    if (joint_.collective_of.empty() || action.op != Op::kReduceGrad) {
      done_[id] = true;
      return;
    }
    reduction_[action.stage] = id;
    for (const std::int32_t collective : queues_.issue(id)) {
      for (const std::int32_t member : joint_.members[collective]) done_[member] = true;
    }
  }

  bool ready(const Action& a) const {
    if (a.op == Op::kOptimizerStep)  // the last reduction ends last
      return reduction_[a.stage] == ActionTable::kNone || done_[reduction_[a.stage]];
    bool all_done = true;
    for_each_input(a, neighbors_, shards_, [&](const ActionInput& input) {
      for (int i = 0; i < input.ops; ++i)
        all_done = all_done && done(input.op[i], input.stage, a.microbatch, input.part);
    });
    return all_done;
  }

  /// An action that the schedule does not list holds nobody up: validate has reported it.
  bool done(Op op, int stage, int microbatch, int part) const {
    const std::int32_t id = table_.find(op, stage, microbatch, part);
    return id == ActionTable::kNone || done_[id];
  }

  const Schedule& schedule_;
  const ActionTable& table_;
  ActionIds ids_;
  StageNeighbors neighbors_;
  Shards shards_;
  JointReductions joint_;
  ReductionQueues queues_;
  std::vector<std::int32_t> reduction_;  // [stage] the last REDUCE_GRAD issued
  std::vector<bool> done_;
  std::vector<std::size_t> cursor_;
};

}  // namespace

bool runs_to_end(const Schedule& schedule) {
  return runs_to_end(schedule, ActionTable(schedule));
}

bool runs_to_end(const Schedule& schedule, const ActionTable& table) {
  if (weights_travel(schedule)) return find_cycle(action_graph(schedule)).empty();
  return Player(schedule, table).play();
}

}}  // namespace plumb::schedules
