#include "schedules/dependencies/dependencies.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/inner_reductions.h"
#include "schedules/dependencies/inputs.h"
#include "schedules/dependencies/joint_reductions.h"
#include "schedules/dependencies/weight_messages.h"

namespace plumb { inline namespace schedules {
namespace {

/// Walks a schedule once and collects its dependencies, rank by rank.
class DependencyCollector {
 public:
  DependencyCollector(const Schedule& schedule, const ActionTable& table, Sends sends)
      : schedule_(schedule),
        sends_(sends),
        table_(table),
        neighbors_(stage_neighbors(schedule)),
        shards_(shards_of(schedule)),
        weights_(weight_messages(schedule)),
        copies_(has_copies(schedule)),
        lowered_(has_messages(schedule)) {}

  /// Returns the dependencies of the next rank. They replace those of the rank before.
  std::vector<Dependency>& collect_rank(const std::vector<Action>& actions) {
    found_.clear();
    std::int32_t rank_holder = ActionTable::kNone;          // the last action so far that issue waits for
    std::map<int, std::vector<std::int32_t>> unshards;      // by stage, since the last RESHARD
    std::map<int, std::vector<std::int32_t>> reductions;    // by stage, since the last OPTIMIZER_STEP
    std::map<Op, std::int32_t> last_beside;                 // collectives and moves have a channel for each operation
    std::map<std::tuple<Op, int>, std::int32_t> last_send;  // (direction, destination)
    const std::vector<std::int64_t> hosts = hosts_of_reductions(actions, copies_);
    const std::int32_t first_id = next_id_;

    for (const Action& action : actions) {
      const std::int32_t id = next_id_++;
      add(rank_holder, id, Wait::kOccupied, Reason::kIssue);
      for (const std::int32_t send : weights_.awaited_by(id)) add(send, id, Wait::kDelivered, Reason::kMessage);
      if (is_compute(action.op)) {
        add_inputs(action, id);
        for (const std::int32_t unshard : unshards[action.stage])
          add(unshard, id, Wait::kDelivered, Reason::kParameters);
        if (action.op == Op::kOptimizerStep) {
          for (const std::int32_t reduce : reductions[action.stage])
            add(reduce, id, Wait::kDelivered, Reason::kReduction);
          reductions[action.stage].clear();
        }
        rank_holder = id;
      } else if (is_send(action.op)) {
        const auto [receiver, receive] = receive_of(action);
        add_channel(last_send, std::tuple{action.op, receiver}, id);
        if (sends_ != Sends::kBuffered) add(receive, id, Wait::kStart, Reason::kRendezvous);
        if (sends_ == Sends::kBlocking) rank_holder = id;
      } else if (sends_weights(action.op)) {
        add_channel(last_send, std::tuple{action.op, schedule_.stages[action.peer].rank}, id);
        if (sends_ != Sends::kBuffered) add(weights_.partner[id], id, Wait::kStart, Reason::kRendezvous);
        if (sends_ == Sends::kBlocking) rank_holder = id;
      } else if (is_collective(action.op)) {
        add_channel(last_beside, action.op, id);
        if (action.op == Op::kUnshard) unshards[action.stage].push_back(id);
        if (action.op == Op::kReduceGrad) reductions[action.stage].push_back(id);
        if (const std::int64_t host = hosts[id - first_id]; host >= 0)
          add(first_id + static_cast<std::int32_t>(host), id, Wait::kInside, Reason::kData);
      } else if (takes_away(action.op) || brings_back(action.op)) {
        add_channel(last_beside, action.op, id);
        add_inputs(action, id);
      } else if (action.op == Op::kReshard) {
        unshards[action.stage].clear();
      }
    }
    return found_;
  }

 private:
  /// Adds the wait for the last action of its channel.
  template <class Channel>
  void add_channel(std::map<Channel, std::int32_t>& last, const Channel& channel, std::int32_t id) {
    const auto [it, is_first] = last.try_emplace(channel, id);
    if (!is_first) add(it->second, id, Wait::kOccupied, Reason::kChannel);
    it->second = id;
  }

  /// Adds the waits of an action for its inputs (schedules/dependencies/inputs.h).
  void add_inputs(const Action& a, std::int32_t id) {
    for_each_input(a, neighbors_, shards_, [&](const ActionInput& input) {
      if (input.from == ActionInput::From::kNeighbor) return add_neighbor(a, input, id, lowered_);
      if (input.from == ActionInput::From::kShard) return add_neighbor(a, input, id, false);
      const Reason reason = input.from == ActionInput::From::kMove ? Reason::kMoved : Reason::kData;
      for (int i = 0; i < input.ops; ++i)
        add(table_.find(input.op[i], input.stage, a.microbatch, input.part), id, Wait::kOccupied, reason);
    });
  }

  /// The input comes through the send that carries it where the neighbour is on another rank and has messages, and from
  /// its producer otherwise.
  void add_neighbor(const Action& a, const ActionInput& input, std::int32_t id, bool has_messages) {
    const bool local = schedule_.stages[input.stage].rank == schedule_.stages[a.stage].rank;
    if (has_messages && !local) {
      const Op send = a.op == Op::kForward ? Op::kSendActivation : Op::kSendGradient;
      return add(table_.find(send, input.stage, a.microbatch, input.part), id, Wait::kDelivered, Reason::kMessage);
    }
    std::int32_t producer = ActionTable::kNone;
    for (int i = 0; i < input.ops && producer == ActionTable::kNone; ++i)
      producer = table_.find(input.op[i], input.stage, a.microbatch, input.part);
    add(producer, id, Wait::kOccupied, local ? Reason::kData : Reason::kMessage);
  }

  /// Returns the rank that a send goes to, and the id of the receive that takes it.
  std::pair<int, std::int32_t> receive_of(const Action& send) const {
    const bool forward = send.op == Op::kSendActivation;
    const int consumer = forward ? neighbors_.successor[send.stage] : neighbors_.predecessor[send.stage];
    if (consumer < 0) return {-1, ActionTable::kNone};
    return {schedule_.stages[consumer].rank,
            table_.find(forward ? Op::kRecvActivation : Op::kRecvGradient, consumer, send.microbatch, send.part)};
  }

  void add(std::int32_t from, std::int32_t to, Wait wait, Reason reason) {
    if (from != ActionTable::kNone && from != to) found_.push_back({from, to, wait, reason});
  }

  const Schedule& schedule_;
  Sends sends_;
  const ActionTable& table_;
  StageNeighbors neighbors_;
  Shards shards_;
  WeightMessages weights_;
  bool copies_;
  bool lowered_;
  std::int32_t next_id_ = 0;
  std::vector<Dependency> found_;
};

/// Returns [action id]: true for the second action of an overlapped pair.
std::vector<bool> seconds_of_pairs(const Schedule& schedule) {
  std::vector<bool> is_second;
  is_second.reserve(static_cast<std::size_t>(action_count(schedule)));
  for (const auto& actions : schedule.ranks) {
    bool after_first = false;
    for (const Action& action : actions) {
      is_second.push_back(after_first);
      after_first = action.overlaps_next;
    }
  }
  return is_second;
}

/// Makes the REDUCE_GRADs of copies one node.
void join_reductions(const JointReductions& joint, std::vector<Dependency>& dependencies) {
  if (joint.collective_of.empty()) return;
  const auto first_member = [&joint](std::int32_t id) {
    const std::int32_t collective = joint.collective_of[id];
    return collective < 0 ? id : joint.members[collective].front();
  };
  for (Dependency& dependency : dependencies) {
    const std::int32_t to = first_member(dependency.to);
    if (to != dependency.to) dependency.reason = Reason::kReduction;
    dependency.to = to;
    dependency.from = first_member(dependency.from);
  }
}

}  // namespace

ActionIds action_ids(const Schedule& schedule) {
  ActionIds ids{.first_id = {0}};
  for (const auto& actions : schedule.ranks)
    ids.first_id.push_back(ids.first_id.back() + static_cast<std::int32_t>(actions.size()));
  return ids;
}

ActionPlace place_of(const ActionIds& ids, std::int32_t id) {
  const auto after = std::ranges::upper_bound(ids.first_id, id);
  const int rank = static_cast<int>(after - ids.first_id.begin()) - 1;
  return {.rank = rank, .position = id - ids.first_id[rank]};
}

std::vector<Dependency> dependencies(const Schedule& schedule, Sends sends) {
  return dependencies(schedule, ActionTable(schedule), sends);
}

std::vector<Dependency> dependencies(const Schedule& schedule, const ActionTable& table, Sends sends) {
  std::vector<Dependency> all;
  all.reserve(3 * static_cast<std::size_t>(action_count(schedule)));
  for_each_rank_dependencies(schedule, table, sends, [&all](int, std::span<const Dependency> found) {
    all.insert(all.end(), found.begin(), found.end());
  });
  return all;
}

void for_each_rank_dependencies(const Schedule& schedule, const ActionTable& table, Sends sends,
                                const std::function<void(int rank, std::span<const Dependency> found)>& visit) {
  DependencyCollector collector(schedule, table, sends);
  const std::vector<bool> is_second = seconds_of_pairs(schedule);
  const JointReductions joint = joint_reductions(schedule);
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank) {
    std::vector<Dependency>& found = collector.collect_rank(schedule.ranks[rank]);
    for (Dependency& dependency : found) {
      if (is_second[dependency.from]) --dependency.from;
      if (is_second[dependency.to]) --dependency.to;
    }
    join_reductions(joint, found);
    std::erase_if(found, [](const Dependency& dependency) { return dependency.from == dependency.to; });
    visit(rank, found);
  }
}

}}  // namespace plumb::schedules
