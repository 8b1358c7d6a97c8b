#include "schedules/search/catalogue_orders.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns the schedule of that entry for the question's numbers, or an empty one where its constraints are
/// broken.
Schedule made(const CatalogueEntry& entry, const OrderQuestion& question) {
  const int chunks = static_cast<int>(question.frame.stages.size()) / question.ranks;
  ScheduleParameters parameters{.ranks = question.ranks, .microbatches = question.frame.microbatches};
  if (entry.takes_chunks) parameters.chunks = chunks;
  if (entry.takes_slices) parameters.slices = question.slices;
  try {
    return make_schedule(entry.name, parameters);
  } catch (const ScheduleError&) {
    return {};
  }
}

/// True for an overlapped pair of a forward and a backward that takes less time than the two.
bool gains_by_pair(const OrderQuestion& question, const Action& first, const Action& second) {
  const Action& forward = first.op == Op::kForward ? first : second;
  const Action& backward = first.op == Op::kForward ? second : first;
  const bool is_pair = question.costs.has_pairs() && first.overlaps_next && forward.op == Op::kForward &&
                       gives_input_gradient(backward.op);
  const bool is_known = is_pair && std::max(forward.part, backward.part) < question.slices &&
                        !(question.whole_backwards && backward.op == Op::kInputGrad);
  return is_known && pair_duration(question.costs, forward, backward) <
                         duration_of(question.costs, forward) + duration_of(question.costs, backward);
}

bool has_pairs(const Schedule& order) {
  return std::ranges::any_of(
      order.ranks, [](const std::vector<Action>& list) { return std::ranges::any_of(list, &Action::overlaps_next); });
}

}  // namespace

Schedule as_searched(Schedule schedule, const OrderQuestion& question) {
  Schedule searched = question.frame;
  searched.name = schedule.name;
  for (const std::vector<Action>& actions : schedule.ranks) {
    std::vector<Action>& order = searched.ranks.emplace_back();
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (i + 1 < actions.size() && gains_by_pair(question, actions[i], actions[i + 1])) {
        const bool is_turned = actions[i].op != Op::kForward;
        order.push_back(actions[is_turned ? i + 1 : i]);
        order.back().overlaps_next = true;
        order.push_back(actions[is_turned ? i : i + 1]);
        order.back().overlaps_next = false;
        ++i;
        continue;
      }
      Action action = actions[i];
      const bool is_split = action.op == Op::kInputGrad || action.op == Op::kWeightGrad;
      if (action.op > Op::kWeightGrad || action.part >= question.slices || (is_split && question.whole_backwards)) {
        searched.ranks.clear();
        return searched;
      }
      action.overlaps_next = false;
      const bool splits = action.op == Op::kBackward && !question.whole_backwards;
      if (splits) action.op = Op::kInputGrad;
      order.push_back(action);
      if (splits) action.op = Op::kWeightGrad, order.push_back(action);
    }
  }
  return searched;
}

Schedule searchable_order(const Schedule& schedule, const OrderQuestion& question) {
  Schedule order = as_searched(schedule, question);
  std::int64_t count = action_count(order);
  if (!question.whole_backwards) {  // a B that is kept in a pair counts as I and W
    for (const std::vector<Action>& list : order.ranks) count += std::ranges::count(list, Op::kBackward, &Action::op);
  }
  if (count == action_count(serial_order(question))) return order;
  throw ScheduleError(
      fmt::format("{} cannot be searched: give F, B, I and W of every stage and micro-batch, without shards, moves or "
                  "messages",
                  schedule.name));
}

OrderQuestion placed_question(const Schedule& schedule, Objective objective) {
  const bool splits = std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::find(actions, Op::kInputGrad, &Action::op) != actions.end();
  });
  return {.frame = {.name = schedule.name, .microbatches = schedule.microbatches, .stages = schedule.stages},
          .ranks = static_cast<int>(schedule.ranks.size()),
          .slices = slices_of(schedule),
          .whole_backwards = !splits,
          .objective = objective};
}

std::vector<Schedule> catalogue_orders(const OrderQuestion& question) {
  constexpr std::string_view kMadeBySearch = "zb-auto";
  constexpr std::string_view kWithoutBackwards = "forward-only";
  const int stages = static_cast<int>(question.frame.stages.size());
  OrderQuestion apart = question;
  apart.costs.pairs = {};
  std::vector<Schedule> orders;
  for (const CatalogueEntry& entry : catalogue()) {
    const bool has_stages = entry.takes_chunks || entry.both_ends || stages == entry.chunks * question.ranks;
    if (question.slices > 1 && !entry.takes_slices) continue;
    if (!has_stages || entry.name == kMadeBySearch || entry.name == kWithoutBackwards) continue;
    Schedule schedule = made(entry, question);
    if (schedule.stages != question.frame.stages || is_asynchronous(schedule)) continue;
    Schedule order = as_searched(schedule, question);
    if (order.ranks.empty()) continue;
    if (has_pairs(order)) {
      if (Schedule without = as_searched(schedule, apart); fits_memory(question, without)) {
        orders.push_back(std::move(without));
      }
    }
    if (fits_memory(question, order)) orders.push_back(std::move(order));
  }
  return orders;
}

Schedule serial_order(const OrderQuestion& question) {
  Schedule order = question.frame;
  order.ranks.assign(static_cast<std::size_t>(question.ranks), {});
  const StageNeighbors neighbors = stage_neighbors(order);
  std::vector<std::vector<int>> lanes;
  for (int s = 0; s < static_cast<int>(order.stages.size()); ++s) {
    if (neighbors.predecessor[s] >= 0) continue;
    std::vector<int>& lane = lanes.emplace_back();
    for (int at = s; at >= 0; at = neighbors.successor[at]) lane.push_back(at);
  }
  const auto list = [&order](Op op, int stage, int microbatch, int slice) {
    order.ranks[order.stages[stage].rank].push_back(
        {.op = op, .part = static_cast<std::int16_t>(slice), .stage = stage, .microbatch = microbatch});
  };
  const auto pass = [&](const std::vector<int>& lane, int microbatch) {
    for (const int stage : lane) {
      for (int k = 0; k < question.slices; ++k) list(Op::kForward, stage, microbatch, k);
    }
    for (auto stage = lane.rbegin(); stage != lane.rend(); ++stage) {
      for (int k = question.slices; k-- > 0;) {
        list(question.whole_backwards ? Op::kBackward : Op::kInputGrad, *stage, microbatch, k);
        if (!question.whole_backwards) list(Op::kWeightGrad, *stage, microbatch, k);
      }
    }
  };
  const int count = static_cast<int>(lanes.size());
  const int m = order.microbatches;
  for (int lane = 0; lane < count; ++lane) {
    for (int microbatch = m * lane / count; microbatch < m * (lane + 1) / count; ++microbatch) {
      pass(lanes[lane], microbatch);
    }
  }
  return order;
}

}}  // namespace plumb::schedules
