#include "executor/groups/message_pairs.h"

#include <algorithm>
#include <optional>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/passes/insertions.h"

namespace plumb { inline namespace executor {
namespace {

Op other_end(Op op) {
  switch (op) {
    case Op::kSendActivation:
      return Op::kRecvActivation;
    case Op::kRecvActivation:
      return Op::kSendActivation;
    case Op::kSendGradient:
      return Op::kRecvGradient;
    default:
      return Op::kSendGradient;
  }
}

class Finder {
 public:
  Finder(const Schedule& schedule, const RankGrid& grid) : schedule_(schedule), grid_(grid) {}

  std::vector<MessagePair> find() {
    std::vector<MessagePair> pairs;
    std::vector<bool> is_taken(static_cast<std::size_t>(ids_.first_id.back()), false);
    for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(schedule_.ranks.size()); ++rank)
      for (std::int32_t position = 0; position + 1 < size_of(rank); ++position) {
        const std::int32_t one = id_of({rank, position});
        const std::optional<NeighborPlace> there = exchange_at({rank, position});
        if (!there) continue;
        const std::int32_t other = id_of(*there);
        if (is_taken[index(one)] || is_taken[index(one + 1)] || is_taken[index(other)] || is_taken[index(other + 1)])
          continue;
        for (const std::int32_t id : {one, one + 1, other, other + 1}) is_taken[index(id)] = true;
        const std::int32_t sent = is_send(action_of({rank, position}).op) ? one : one + 1;
        const std::int32_t answered = is_send(action_of(*there).op) ? other : other + 1;
        pairs.push_back({.sends = {std::min(sent, answered), std::max(sent, answered)},
                         .ends = {NeighborPlace{rank, position}, *there}});
      }
    std::ranges::sort(pairs, {}, &MessagePair::sends);
    return pairs;
  }

 private:
  static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }
  const std::vector<Action>& actions_of(std::int32_t rank) const { return schedule_.ranks[index(rank)]; }
  std::int32_t size_of(std::int32_t rank) const { return static_cast<std::int32_t>(actions_of(rank).size()); }
  const Action& action_of(NeighborPlace place) const { return actions_of(place.rank)[index(place.position)]; }
  std::int32_t id_of(NeighborPlace place) const { return ids_.first_id[index(place.rank)] + place.position; }

  /// Returns the place of a message's other end.
  std::optional<NeighborPlace> place_there(const Action& message) const {
    const bool to_next = message.op == Op::kSendActivation || message.op == Op::kRecvGradient;
    const int stage =
        (to_next ? neighbors_.successor : neighbors_.predecessor)[static_cast<std::size_t>(message.stage)];
    const std::int32_t id = table_.find(other_end(message.op), stage, message.microbatch, message.part);
    if (id == ActionTable::kNone) return std::nullopt;
    const ActionPlace place = place_of(ids_, id);
    return NeighborPlace{place.rank, place.position};
  }

  /// Returns the place of the first of the two on the other rank, if those at `first` are to be launched together.
  std::optional<NeighborPlace> exchange_at(NeighborPlace first) const {
    const NeighborPlace second{first.rank, first.position + 1};
    const Action &one = action_of(first), &two = action_of(second);
    if (!((is_send(one.op) && is_recv(two.op)) || (is_recv(one.op) && is_send(two.op)))) return std::nullopt;
    const std::optional<NeighborPlace> there = place_there(one), other = place_there(two);
    if (!there || !other || there->rank != other->rank || std::abs(there->position - other->position) != 1)
      return std::nullopt;
    if (mesh_of(grid_, first.rank) != mesh_of(grid_, there->rank)) return std::nullopt;
    if (!leaves_time(is_recv(one.op) ? first : second) || !leaves_time(is_send(one.op) ? *there : *other))
      return std::nullopt;
    return NeighborPlace{there->rank, std::min(there->position, other->position)};
  }

  /// True if a compute action stands between a RECV and the action, or overlapped pair, that consumes the message.
  bool leaves_time(NeighborPlace received) const {
    const std::vector<Action>& actions = actions_of(received.rank);
    const Action& message = action_of(received);
    const bool forward = message.op == Op::kRecvActivation;
    const auto takes = [&](const Action& action) {
      return action.stage == message.stage && action.microbatch == message.microbatch && action.part == message.part &&
             (forward ? action.op == Op::kForward : gives_input_gradient(action.op));
    };
    const auto behind = actions.begin() + received.position + 1;
    const auto taker = std::find_if(behind, actions.end(), takes);
    if (taker == actions.end()) return false;
    const std::size_t end = position_before(actions, static_cast<std::size_t>(taker - actions.begin()));
    return std::any_of(behind, actions.begin() + static_cast<std::ptrdiff_t>(end),
                       [](const Action& action) { return is_compute(action.op); });
  }

  const Schedule& schedule_;
  const RankGrid& grid_;
  const ActionIds ids_ = action_ids(schedule_);
  const ActionTable table_{schedule_};
  const StageNeighbors neighbors_ = stage_neighbors(schedule_);
};

}  // namespace

std::vector<MessagePair> message_pairs(const Schedule& lowered, const RankGrid& grid) {
  return Finder(lowered, grid).find();
}

}}  // namespace plumb::executor
