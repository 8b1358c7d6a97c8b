#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "schedules/action_table.h"
#include "schedules/passes/insertions.h"
#include "schedules/passes/passes.h"

namespace plumb {
namespace {

/// A receive, and the position of its consumer in the receiving rank's list.
struct Arrival {
  Action receive;
  std::size_t consumer = 0;
};

/// What each channel (source rank, destination rank, send operation) delivers, in the order of the sends.
using Arrivals = std::map<std::tuple<int, int, Op>, std::vector<Arrival>>;

/// Which messages a compute action makes: F feeds the forward of the next stage, B or I the backward of the one before.
struct Route {
  Op send;
  Op receive;
  Op consumer;
  Op other_consumer;
};
constexpr Route kActivationRoute{Op::kSendActivation, Op::kRecvActivation, Op::kForward, Op::kForward};
constexpr Route kGradientRoute{Op::kSendGradient, Op::kRecvGradient, Op::kBackward, Op::kInputGrad};

/// For each position, that of the compute action before it (its own where there is none); pairs count as one.
std::vector<std::size_t> previous_compute(const std::vector<Action>& actions) {
  std::vector<std::size_t> previous(actions.size());
  std::size_t last = 0;
  bool any = false;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const bool second_of_pair = position_before(actions, i) != i;
    previous[i] = second_of_pair ? previous[i - 1] : (any ? last : i);
    if (is_compute(actions[i].op) && !second_of_pair) {
      last = i;
      any = true;
    }
  }
  return previous;
}

}  // namespace

Schedule add_messages(const Schedule& schedule) {
  const ActionTable table(schedule);
  const ActionIds ids = action_ids(schedule);
  const StageNeighbors neighbors = stage_neighbors(schedule);
  std::vector<std::vector<Insertion>> insertions(schedule.ranks.size());

  // Receives are inserted first: at one position they stand before a send of the action ahead, so that they are posted
  // early.
  Arrivals arrivals;
  std::vector<std::vector<Insertion>> sends(schedule.ranks.size());
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const std::vector<Action>& actions = schedule.ranks[r];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& a = actions[i];
      const bool forward = a.op == Op::kForward;
      if (!forward && !gives_input_gradient(a.op)) continue;
      const Route& route = forward ? kActivationRoute : kGradientRoute;
      const int neighbor = forward ? neighbors.successor[a.stage] : neighbors.predecessor[a.stage];
      if (neighbor < 0 || schedule.stages[neighbor].rank == static_cast<int>(r)) continue;
      std::int32_t consumer = table.find(route.consumer, neighbor, a.microbatch, a.part);
      if (consumer == ActionTable::kNone) consumer = table.find(route.other_consumer, neighbor, a.microbatch, a.part);
      if (consumer == ActionTable::kNone) continue;
      const auto [to_rank, position] = place_of(ids, consumer);
      sends[r].push_back({.position = position_behind(actions, i),
                          .action = {.op = route.send, .part = a.part, .stage = a.stage, .microbatch = a.microbatch}});
      arrivals[{static_cast<int>(r), to_rank, route.send}].push_back(
          {.receive = {.op = route.receive, .part = a.part, .stage = neighbor, .microbatch = a.microbatch},
           .consumer = static_cast<std::size_t>(position)});
    }
  }

  std::vector<std::vector<std::size_t>> previous;
  for (const auto& actions : schedule.ranks) previous.push_back(previous_compute(actions));
  for (const auto& [channel, deliveries] : arrivals) {
    const auto rank = static_cast<std::size_t>(std::get<1>(channel));
    // From the last delivery back: a receive stands no later than the receives of its channel behind it.
    std::size_t latest = schedule.ranks[rank].size();
    std::vector<Insertion> receives;
    for (auto arrival = deliveries.rbegin(); arrival != deliveries.rend(); ++arrival) {
      latest = std::min(latest, previous[rank][arrival->consumer]);
      receives.push_back({.position = latest, .action = arrival->receive});
    }
    insertions[rank].insert(insertions[rank].end(), receives.rbegin(), receives.rend());
  }

  Schedule result = schedule;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    insertions[r].insert(insertions[r].end(), sends[r].begin(), sends[r].end());
    result.ranks[r] = with_insertions(schedule.ranks[r], std::move(insertions[r]));
  }
  return result;
}

}  // namespace plumb
