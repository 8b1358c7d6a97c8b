#include "schedules/synthesis/order_graph.h"

#include <map>

#include <fmt/format.h>

#include "schedules/dependencies/action_table.h"
#include "schedules/error.h"

namespace plumb { inline namespace schedules {
namespace {

/// True for a forward that forms a pair with the backward behind it.
bool is_pair(const std::vector<Action>& list, std::size_t i) {
  return i + 1 < list.size() && list[i].op == Op::kForward && gives_input_gradient(list[i + 1].op) &&
         !list[i + 1].overlaps_next;
}

}  // namespace

OrderGraph::OrderGraph(const Schedule& schedule, const OrderQuestion& question)
    : costs(question.costs), max_bytes(question.memory.max_bytes), objective(question.objective) {
  const ActionTable table(schedule);
  const StageNeighbors neighbors = stage_neighbors(schedule);
  std::map<std::array<int, 3>, std::int32_t> channel_of;  // [source rank, destination rank, 1 for activations]
  const auto message = [&](bool forward, int stage, int to) {
    const HopTimes& busy = question.costs.hop_busy;
    const int from_rank = schedule.stages[stage].rank;
    const std::int64_t time = to < 0 || !question.costs.has_busy_links() ? 0
                              : forward                                  ? busy.activation[stage]
                                                                         : busy.gradient[to];
    if (time == 0 || schedule.stages[to].rank == from_rank) return Message{};
    const std::array key{from_rank, schedule.stages[to].rank, forward ? 1 : 0};
    return Message{channel_of.emplace(key, static_cast<std::int32_t>(channel_of.size())).first->second, time};
  };
  const auto input_grad = [&table](int stage, int microbatch, int part) {
    const std::int32_t id = table.find(Op::kInputGrad, stage, microbatch, part);
    return id != kNone ? id : table.find(Op::kBackward, stage, microbatch, part);
  };
  for (int r = 0; r < static_cast<int>(schedule.ranks.size()); ++r) {
    std::vector<std::int32_t>& order = listed.emplace_back();
    const std::vector<Action>& list = schedule.ranks[r];
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Action& a = list[i];
      const bool is_known = a.op <= Op::kWeightGrad && (!a.overlaps_next || is_pair(list, i));
      if (!is_known) {
        throw ScheduleError(
            fmt::format("{} of {} cannot be searched: give F, B, I and W, and pairs of F with B or I behind it",
                        to_text(a), schedule.name));
      }
      std::array<Input, 3> needed;
      int reader = kNone;
      Message sent;
      if (a.op == Op::kWeightGrad) {
        needed[0].id = table.find(Op::kInputGrad, a.stage, a.microbatch, a.part);
      } else {
        const bool forward = a.op == Op::kForward;
        const int from = (forward ? neighbors.predecessor : neighbors.successor)[a.stage];
        const int to = (forward ? neighbors.successor : neighbors.predecessor)[a.stage];
        if (!forward) needed[0].id = table.find(Op::kForward, a.stage, a.microbatch, a.part);
        needed[2].id = forward ? table.find(Op::kForward, a.stage, a.microbatch, a.part - 1)
                               : input_grad(a.stage, a.microbatch, a.part + 1);
        if (from >= 0) {
          needed[1].id =
              forward ? table.find(Op::kForward, from, a.microbatch, a.part) : input_grad(from, a.microbatch, a.part);
          const HopTimes& hop = question.costs.hop;
          const std::int64_t delay = forward ? hop.activation[from] : hop.gradient[a.stage];
          needed[1].delay = schedule.stages[from].rank == r ? 0 : delay;
        }
        if (to >= 0 && schedule.stages[to].rank != r) reader = schedule.stages[to].rank;
        sent = message(forward, a.stage, to);
      }
      order.push_back(static_cast<std::int32_t>(actions.size()));
      actions.push_back(a);
      actions.back().overlaps_next = false;
      joined.push_back(a.overlaps_next ? 1 : 0);
      may_pair = may_pair || a.overlaps_next;
      ranks.push_back(r);
      durations.push_back(duration_of(question.costs, a));
      bytes_added.push_back(plumb::bytes_added(question.memory, a));
      inputs.push_back(needed);
      readers.push_back(reader);
      messages.push_back(sent);
    }
  }
  channels = static_cast<int>(channel_of.size());
  may_pair = may_pair || costs.has_pairs();
}

bool OrderGraph::can_pair(std::int32_t first, std::int32_t second) const {
  return actions[first].op == Op::kForward && gives_input_gradient(actions[second].op);
}

std::int64_t OrderGraph::pair_gain(std::int32_t first, std::int32_t second) const {
  if (!costs.has_pairs() || !can_pair(first, second)) return 0;
  return durations[first] + durations[second] - plumb::pair_duration(costs, actions[first], actions[second]);
}

Schedule in_order(Schedule schedule, const OrderGraph& graph, const RankOrders& orders, const Joined& joined) {
  for (std::size_t r = 0; r < orders.size(); ++r) {
    std::vector<Action>& list = schedule.ranks[r];
    list.clear();
    for (std::size_t i = 0; i < orders[r].size(); ++i) {
      const std::int32_t id = orders[r][i];
      list.push_back(graph.actions[id]);
      const bool is_second = i > 0 && list[i - 1].overlaps_next;
      const bool is_first = !is_second && !joined.empty() && joined[id] != 0 && i + 1 < orders[r].size();
      list.back().overlaps_next = is_first && graph.pair_gain(id, orders[r][i + 1]) > 0;
    }
  }
  return schedule;
}

}}  // namespace plumb::schedules
