#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/channels.h"
#include "schedules/passes/insertions.h"
#include "schedules/passes/passes.h"

namespace plumb { inline namespace schedules {
namespace {

/// A receive that goes right before the action at `position` of its rank's list.
struct Arrival {
  std::int32_t position = 0;
  Action receive;
};

/// Messages of a schedule before they are inserted.
struct Messages {
  std::vector<std::vector<bool>> sends;            ///< [rank][position] true where the result of the action is sent
  std::vector<std::vector<Arrival>> arrivals;      ///< [channel] arrivals in the order of the sends
  std::vector<std::vector<std::size_t>> incoming;  ///< [rank] its channels, ascending
};

/// The messages that a compute action makes: F feeds the forward of the next stage, B or I the backward of the one
/// before.
struct MessageRoute {
  Op send;
  Op receive;
  Op consumer;
  Op other_consumer;
};
constexpr MessageRoute kActivationRoute{Op::kSendActivation, Op::kRecvActivation, Op::kForward, Op::kForward};
constexpr MessageRoute kGradientRoute{Op::kSendGradient, Op::kRecvGradient, Op::kBackward, Op::kInputGrad};

const MessageRoute& route_of(Op producer) {
  return producer == Op::kForward ? kActivationRoute : kGradientRoute;
}

/// Returns every message that has a producer and a consumer on different ranks; arrivals stand at their consumers.
Messages find_messages(const Schedule& schedule) {
  const ActionTable table(schedule);
  const ActionIds ids = action_ids(schedule);
  const StageNeighbors neighbors = stage_neighbors(schedule);
  const Channels channels = channels_of(schedule, neighbors);
  Messages messages;
  messages.arrivals.resize(channels.channels.size());
  messages.incoming.resize(schedule.ranks.size());
  for (std::size_t c = 0; c < channels.channels.size(); ++c)
    messages.incoming[channels.channels[c].destination_rank].push_back(c);

  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const std::vector<Action>& actions = schedule.ranks[r];
    std::vector<bool>& sends = messages.sends.emplace_back(actions.size(), false);
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& a = actions[i];
      const bool forward = a.op == Op::kForward;
      if (!forward && !gives_input_gradient(a.op)) continue;
      const MessageRoute& route = route_of(a.op);
      const int neighbor = (forward ? neighbors.successor : neighbors.predecessor)[a.stage];
      if (neighbor < 0 || schedule.stages[neighbor].rank == static_cast<int>(r)) continue;
      std::int32_t consumer = table.find(route.consumer, neighbor, a.microbatch, a.part);
      if (consumer == ActionTable::kNone) consumer = table.find(route.other_consumer, neighbor, a.microbatch, a.part);
      if (consumer == ActionTable::kNone) continue;
      sends[i] = true;
      const int channel = (forward ? channels.of_activations : channels.of_gradients)[a.stage];
      messages.arrivals[channel].push_back(
          {.position = consumer - ids.first_id[schedule.stages[neighbor].rank],
           .receive = {.op = route.receive, .part = a.part, .stage = neighbor, .microbatch = a.microbatch}});
    }
  }
  return messages;
}

/// Returns, for each position, that of the compute action before it (its own where there is none); pairs count as one.
std::vector<std::int32_t> previous_compute(const std::vector<Action>& actions) {
  std::vector<std::int32_t> previous(actions.size());
  std::int32_t last = ActionTable::kNone;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const auto here = static_cast<std::int32_t>(i);
    const bool second_of_pair = position_before(actions, i) != i;
    previous[i] = second_of_pair ? previous[i - 1] : (last == ActionTable::kNone ? here : last);
    if (is_compute(actions[i].op) && !second_of_pair) last = here;
  }
  return previous;
}

/// Puts each receive one compute action ahead of its consumer, or right before it, and no later than the receives that
/// follow it on its channel.
void post(const std::vector<Action>& actions, const std::vector<std::size_t>& incoming, Receives receives,
          std::vector<std::vector<Arrival>>& arrivals) {
  const std::vector<std::int32_t> previous = previous_compute(actions);
  for (const std::size_t channel : incoming) {
    auto latest = static_cast<std::int32_t>(actions.size());
    for (auto arrival = arrivals[channel].rbegin(); arrival != arrivals[channel].rend(); ++arrival) {
      const std::int32_t place =
          receives == Receives::kEarly
              ? previous[arrival->position]
              : static_cast<std::int32_t>(position_before(actions, static_cast<std::size_t>(arrival->position)));
      latest = std::min(latest, place);
      arrival->position = latest;
    }
  }
}

/// Returns a rank's list with its messages. At one place receives, by channel, stand ahead of the send of the action
/// before, so that they are posted early.
std::vector<Action> with_messages(const std::vector<Action>& actions, const std::vector<bool>& sends,
                                  const std::vector<std::size_t>& incoming,
                                  const std::vector<std::vector<Arrival>>& arrivals) {
  std::size_t size = actions.size() + static_cast<std::size_t>(std::ranges::count(sends, true));
  for (const std::size_t channel : incoming) size += arrivals[channel].size();
  std::vector<Action> result;
  result.reserve(size);
  std::vector<std::size_t> received(incoming.size(), 0);
  const auto send = [&](std::size_t i) {
    if (!sends[i]) return;
    const Action& a = actions[i];
    result.push_back({.op = route_of(a.op).send, .part = a.part, .stage = a.stage, .microbatch = a.microbatch});
  };
  for (std::size_t i = 0; i <= actions.size(); ++i) {
    for (std::size_t c = 0; c < incoming.size(); ++c) {
      const std::vector<Arrival>& line = arrivals[incoming[c]];
      for (; received[c] < line.size() && line[received[c]].position == static_cast<std::int32_t>(i); ++received[c])
        result.push_back(line[received[c]].receive);
    }
    if (i > 1 && actions[i - 2].overlaps_next) send(i - 2);
    if (i > 0 && !actions[i - 1].overlaps_next) send(i - 1);
    if (i < actions.size()) result.push_back(actions[i]);
  }
  return result;
}

}  // namespace

Schedule add_messages(const Schedule& schedule, Receives receives) {
  Messages messages = find_messages(schedule);
  Schedule result{.name = schedule.name,
                  .microbatches = schedule.microbatches,
                  .weights = schedule.weights,
                  .stages = schedule.stages};
  result.ranks.reserve(schedule.ranks.size());
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const std::vector<Action>& actions = schedule.ranks[r];
    post(actions, messages.incoming[r], receives, messages.arrivals);
    result.ranks.push_back(with_messages(actions, messages.sends[r], messages.incoming[r], messages.arrivals));
  }
  return result;
}

}}  // namespace plumb::schedules
