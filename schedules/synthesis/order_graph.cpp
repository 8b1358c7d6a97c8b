#include "schedules/synthesis/order_graph.h"

#include <map>

#include <fmt/format.h>

#include "schedules/dependencies/action_table.h"
#include "schedules/error.h"

namespace plumb { inline namespace schedules {
namespace {

std::int64_t duration_of(const OrderCosts& costs, const Action& action) {
  switch (action.op) {
    case Op::kForward:
      return costs.forward[action.stage];
    case Op::kBackward:
      return costs.input_grad[action.stage] + costs.weight_grad[action.stage];
    case Op::kInputGrad:
      return costs.input_grad[action.stage];
    default:
      return costs.weight_grad[action.stage];
  }
}

}  // namespace

OrderGraph::OrderGraph(const Schedule& schedule, const OrderQuestion& question)
    : max_bytes(question.memory.max_bytes), objective(question.objective) {
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
    for (const Action& a : schedule.ranks[r]) {
      if (a.op > Op::kWeightGrad || a.overlaps_next) {
        throw ScheduleError(
            fmt::format("{} of {} cannot be searched: give F, B, I and W without pairs", to_text(a), schedule.name));
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
      ranks.push_back(r);
      durations.push_back(duration_of(question.costs, a));
      bytes_added.push_back(plumb::bytes_added(question.memory, a));
      inputs.push_back(needed);
      readers.push_back(reader);
      messages.push_back(sent);
    }
  }
  channels = static_cast<int>(channel_of.size());
}

Schedule in_order(Schedule schedule, const OrderGraph& graph, const RankOrders& orders) {
  for (std::size_t r = 0; r < orders.size(); ++r) {
    schedule.ranks[r].clear();
    for (const std::int32_t id : orders[r]) schedule.ranks[r].push_back(graph.actions[id]);
  }
  return schedule;
}

}}  // namespace plumb::schedules
