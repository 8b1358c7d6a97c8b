#include "planner/exchange/chakra/chakra_nodes.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/phases.h"
#include "schedules/process_grid.h"

namespace plumb { inline namespace planner {
namespace {

using Ids = std::vector<std::uint64_t>;

/// Returns the devices of the group in which a world rank runs such collectives. Replicas of weights are all ranks of
/// data and context parallelism.
std::vector<int> group_devices(const Layout& layout, Group group, int world_rank) {
  const ProcessGrid grid = grid_of(layout);
  switch (group) {
    case Group::kExpert:
      return devices_of(grid, group_ranks(expert_grid_of(layout), Group::kContext, world_rank));
    case Group::kData: {
      ProcessGrid replicas = grid;
      replicas.data *= std::exchange(replicas.context, 1);
      replicas.expert = 1;
      return devices_of(grid, group_ranks(replicas, Group::kData, world_rank));
    }
    default:
      return devices_of(grid, group_ranks(grid, group, world_rank));
  }
}

void add(Ids& ids, const Ids& others) {
  ids.insert(ids.end(), others.begin(), others.end());
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

class RankNodes {
 public:
  RankNodes(const Evaluation& evaluation, const ChakraGroups& groups, int device)
      : evaluation_(evaluation),
        schedule_(evaluation.lowered),
        groups_(groups),
        grid_(grid_of(evaluation.layout)),
        world_rank_(world_rank_on(grid_, device)),
        neighbors_(stage_neighbors(evaluation.lowered)),
        ids_(action_ids(evaluation.lowered)) {}

  std::vector<ChakraNode> run() {
    const int rank = coordinates_of(grid_, world_rank_).pipeline;
    const std::vector<Action>& actions = schedule_.ranks[static_cast<std::size_t>(rank)];
    first_ = ids_.first_id[static_cast<std::size_t>(rank)];
    const ActionTable table(schedule_);
    parts_ = table.parts();
    const std::vector<Ids> waits = waits_of(rank, actions.size(), table);
    ends_.resize(actions.size());
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const bool pair = actions[i].overlaps_next && i + 1 < actions.size();
      Ids begin;
      for (const std::uint64_t before : waits[i]) add(begin, ends_[before]);
      ends_[i] = run_actions(std::span(actions).subspan(i, pair ? 2 : 1), std::move(begin));
      if (pair) ends_[i + 1] = ends_[i], ++i;
    }
    return std::move(nodes_);
  }

 private:
  /// Returns for each position the positions of the same rank that it waits for. What waits for a message of another
  /// rank waits for its receive.
  std::vector<Ids> waits_of(int rank, std::size_t count, const ActionTable& table) const {
    std::vector<Ids> waits(count);
    const auto position = [&](std::int32_t id) -> std::optional<std::size_t> {
      const std::int32_t at = id - first_;
      if (at < 0 || static_cast<std::size_t>(at) >= count) return std::nullopt;
      return static_cast<std::size_t>(at);
    };
    for_each_rank_dependencies(schedule_, table, Sends::kBuffered, [&](int of_rank, std::span<const Dependency> found) {
      if (of_rank != rank) return;
      for (const Dependency& dependency : found) {
        const bool message = dependency.reason == Reason::kMessage;
        const auto from = position(message ? receive_of(dependency.from, table) : dependency.from);
        const auto to = position(dependency.to);
        if (from && to && *from < *to && dependency.wait != Wait::kStart) waits[*to].push_back(*from);
      }
    });
    return waits;
  }

  /// Returns the receive of the message that an action of another rank sends.
  std::int32_t receive_of(std::int32_t send, const ActionTable& table) const {
    const ActionPlace place = place_of(ids_, send);
    const Action& action =
        schedule_.ranks[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.position)];
    const bool activation = action.op == Op::kSendActivation;
    const int stage =
        (activation ? neighbors_.successor : neighbors_.predecessor)[static_cast<std::size_t>(action.stage)];
    return table.find(activation ? Op::kRecvActivation : Op::kRecvGradient, stage, action.microbatch, action.part);
  }

  /// Adds the nodes of an action or an overlapped pair; returns those with which it ends.
  Ids run_actions(std::span<const Action> actions, Ids begin) {
    if (std::optional<Ids> message = run_message(actions.front(), begin)) return std::move(*message);
    for (const CostPhase& phase : phases_of(evaluation_.costs, actions)) {
      const Ids blocking = run_lane(phase.blocking, actions, begin);
      Ids ends = run_lane(phase.beside, actions, std::move(begin));
      add(ends, blocking);
      begin = std::move(ends);
    }
    return begin;
  }

  Ids run_lane(const std::vector<LaneSegment>& lane, std::span<const Action> actions, Ids begin) {
    for (const LaneSegment& piece : lane) {
      const Segment& segment = *piece.segment;
      ChakraNode node{.name = row_text({actions[piece.action]}), .predicted = segment.seconds};
      if (segment.kind == Segment::Kind::kCollective) {
        node.kind = ChakraNode::Kind::kCollective;
        node.collective = segment.collective;
        node.bytes = segment.bytes;
        node.group = group_number(segment.group);
      }
      begin = {push(std::move(node), std::move(begin))};
    }
    return begin;
  }

  /// Adds the end of a message that this rank has; nothing for other actions. Messages between stages of one rank move
  /// nothing. A receive may be early: it is issued at once, and its consumer waits for it.
  std::optional<Ids> run_message(const Action& action, const Ids& begin) {
    const bool sends = action.op == Op::kSendActivation || action.op == Op::kSendGradient;
    const bool receives = action.op == Op::kRecvActivation || action.op == Op::kRecvGradient;
    if (!sends && !receives) return std::nullopt;
    const bool activation = action.op == Op::kSendActivation || action.op == Op::kRecvActivation;
    const bool to_next = activation == sends;
    const auto stage = static_cast<std::size_t>(action.stage);
    const int other = (to_next ? neighbors_.successor : neighbors_.predecessor)[stage];
    if (other < 0 || schedule_.stages[static_cast<std::size_t>(other)].rank == schedule_.stages[stage].rank)
      return begin;
    const int producer = sends ? action.stage : other;
    const StageCosts& costs = evaluation_.costs.stages[static_cast<std::size_t>(producer)];
    ChakraNode node{.kind = sends ? ChakraNode::Kind::kSend : ChakraNode::Kind::kReceive,
                    .name = row_text({action}),
                    .bytes = activation ? costs.activation_message_bytes : costs.gradient_message_bytes};
    GridCoordinates place = coordinates_of(grid_, world_rank_);
    place.pipeline = schedule_.stages[static_cast<std::size_t>(other)].rank;
    const int own = device_of(grid_, world_rank_), peer = device_of(grid_, world_rank_of(grid_, place));
    node.source = sends ? own : peer;
    node.destination = sends ? peer : own;
    node.tag = tag_of(producer, action, activation);
    return Ids{push(std::move(node), begin)};
  }

  int tag_of(int producer, const Action& action, bool activation) const {
    return ((producer * schedule_.microbatches + action.microbatch) * parts_ + action.part) * 2 + (activation ? 0 : 1);
  }

  int group_number(Group group) const {
    const std::vector<int> devices = group_devices(evaluation_.layout, group, world_rank_);
    return static_cast<int>(std::ranges::lower_bound(groups_, devices) - groups_.begin());
  }

  std::uint64_t push(ChakraNode node, Ids after) {
    node.id = nodes_.size();
    node.after = std::move(after);
    nodes_.push_back(std::move(node));
    return nodes_.back().id;
  }

  const Evaluation& evaluation_;
  const Schedule& schedule_;
  const ChakraGroups& groups_;
  ProcessGrid grid_;
  int world_rank_;
  StageNeighbors neighbors_;
  ActionIds ids_;
  std::int32_t first_ = 0;  ///< id of the rank's first action
  int parts_ = 1;           ///< slices of a sequence
  std::vector<Ids> ends_;   ///< [position]
  std::vector<ChakraNode> nodes_;
};

}  // namespace

ChakraGroups chakra_groups(const Layout& layout) {
  std::set<std::vector<int>> groups;
  for (int rank = 0; rank < world_size(grid_of(layout)); ++rank) {
    for (int group = 0; group < kGroupCount; ++group)
      groups.insert(group_devices(layout, static_cast<Group>(group), rank));
  }
  return {groups.begin(), groups.end()};
}

std::vector<ChakraNode> chakra_nodes(const Evaluation& evaluation, const ChakraGroups& groups, int device) {
  return RankNodes(evaluation, groups, device).run();
}

}}  // namespace plumb::planner
