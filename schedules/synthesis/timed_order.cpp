#include "schedules/synthesis/timed_order.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/action_table.h"
#include "schedules/error.h"

namespace plumb {
namespace {

constexpr std::int64_t kUnknown = -1;

std::int64_t duration_of(const ListCosts& costs, Op op) {
  switch (op) {
    case Op::kForward:
      return costs.forward;
    case Op::kBackward:
      return costs.input_grad + costs.weight_grad;
    case Op::kInputGrad:
      return costs.input_grad;
    default:
      return costs.weight_grad;
  }
}

}  // namespace

TimedOrder::TimedOrder(const Schedule& schedule, const ListCosts& costs) {
  const ActionTable table(schedule);
  const StageNeighbors neighbors = stage_neighbors(schedule);
  const auto either = [&table](Op op, Op other, int stage, int microbatch) {
    const std::int32_t id = table.find(op, stage, microbatch);
    return id != kNone ? id : table.find(other, stage, microbatch);
  };
  for (int r = 0; r < static_cast<int>(schedule.ranks.size()); ++r) {
    std::vector<std::int32_t>& order = first_order_.emplace_back();
    for (const Action& a : schedule.ranks[r]) {
      if (a.op > Op::kWeightGrad || a.part != 0 || a.overlaps_next) {
        throw ScheduleError(fmt::format("{} of {} cannot be searched: give F, B, I and W without slices or pairs",
                                        to_text(a), schedule.name));
      }
      std::array<Input, 2> inputs;
      int reader = kNone;
      if (a.op == Op::kWeightGrad) {
        inputs[0].id = table.find(Op::kInputGrad, a.stage, a.microbatch);
      } else {
        const bool forward = a.op == Op::kForward;
        const int from = (forward ? neighbors.predecessor : neighbors.successor)[a.stage];
        const int to = (forward ? neighbors.successor : neighbors.predecessor)[a.stage];
        if (!forward) inputs[0].id = table.find(Op::kForward, a.stage, a.microbatch);
        if (from >= 0) {
          inputs[1].id = forward ? table.find(Op::kForward, from, a.microbatch)
                                 : either(Op::kInputGrad, Op::kBackward, from, a.microbatch);
          inputs[1].delay = schedule.stages[from].rank == r ? 0 : costs.hop;
        }
        if (to >= 0 && schedule.stages[to].rank != r) reader = schedule.stages[to].rank;
      }
      order.push_back(static_cast<std::int32_t>(actions_.size()));
      actions_.push_back(a);
      ranks_.push_back(r);
      durations_.push_back(duration_of(costs, a.op));
      inputs_.push_back(inputs);
      feeds_.push_back(reader);
    }
  }
  starts_.resize(actions_.size());
  ends_.resize(actions_.size());
  causes_.resize(actions_.size());
}

std::int64_t TimedOrder::span(const RankOrders& orders) {
  std::ranges::fill(ends_, kUnknown);
  std::vector<std::size_t> position(orders.size(), 0);
  std::vector<bool> runnable(orders.size(), true);
  std::vector<int> stack;
  for (int r = static_cast<int>(orders.size()) - 1; r >= 0; --r) stack.push_back(r);
  std::size_t timed = 0;
  while (!stack.empty()) {
    const int r = stack.back();
    stack.pop_back();
    runnable[r] = false;
    const std::vector<std::int32_t>& order = orders[r];
    for (std::size_t& i = position[r]; i < order.size(); ++i) {
      const std::int32_t id = order[i];
      std::int32_t cause = i > 0 ? order[i - 1] : kNone;
      std::int64_t start = i > 0 ? ends_[cause] : 0;
      bool known = true;
      for (const Input& input : inputs_[id]) {
        if (input.id == kNone) continue;
        known = known && ends_[input.id] != kUnknown;
        if (ends_[input.id] + input.delay > start) {
          start = ends_[input.id] + input.delay;
          cause = input.id;
        }
      }
      if (!known) break;
      starts_[id] = start;
      ends_[id] = start + durations_[id];
      causes_[id] = cause;
      ++timed;
      const int reader = feeds_[id];
      if (reader != kNone && !runnable[reader]) {
        runnable[reader] = true;
        stack.push_back(reader);
      }
    }
  }
  longest_rank_ = kNone;
  if (timed < actions_.size()) return kDeadlock;
  std::int64_t longest = 0;
  for (int r = 0; r < static_cast<int>(orders.size()); ++r) {
    if (orders[r].empty()) continue;
    const std::int64_t here = ends_[orders[r].back()] - starts_[orders[r].front()];
    if (here <= longest) continue;
    longest = here;
    longest_rank_ = r;
  }
  return longest;
}

std::vector<std::int32_t> TimedOrder::critical_path(const RankOrders& orders) const {
  std::vector<std::int32_t> path;
  if (longest_rank_ == kNone) return path;
  for (std::int32_t id = orders[longest_rank_].back(); id != kNone; id = causes_[id]) path.push_back(id);
  return path;
}

}  // namespace plumb
