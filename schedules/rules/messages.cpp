#include "schedules/rules/rules.h"

#include <array>

#include <fmt/format.h>

#include "schedules/dependencies/channels.h"

namespace plumb { inline namespace schedules {
namespace {

/// Traffic between neighbouring stages in one direction.
struct Direction {
  Op send;
  Op receive;
  bool forward;
};
constexpr std::array<Direction, 2> kDirections = {Direction{Op::kSendActivation, Op::kRecvActivation, true},
                                                  Direction{Op::kSendGradient, Op::kRecvGradient, false}};

/// Keeps the receive of the last send of each channel.
struct ChannelOrder {
  Channels channels;
  std::vector<std::int32_t> last_receive;  ///< [channel] id, or kNone
};

/// Checks that the receives of a channel stand in the order of its sends.
void check_channel_order(const RuleContext& c, const Action& send, std::int32_t receive, ChannelOrder& order,
                         Findings& found) {
  const int channel = channel_of(order.channels, send);
  const std::int32_t previous = std::exchange(order.last_receive[channel], receive);
  if (previous == ActionTable::kNone || receive > previous) return;
  const auto [rank, position] = place_of(c.ids, receive);
  const auto [other_rank, other_position] = place_of(c.ids, previous);
  found.report(
      rank, position, Rule::kMessageOrder,
      fmt::format("{} stands ahead of {} (position {}), but rank {} sends them the other way round; exchange them",
                  to_text(c.schedule.ranks[rank][position]), to_text(c.schedule.ranks[other_rank][other_position]),
                  other_position, order.channels.channels[channel].source_rank));
}

/// Returns the action that makes an activation (F) or an input gradient (B or I), or kNone.
std::int32_t find_any(const RuleContext& c, bool forward, int stage, int microbatch, int part) {
  if (forward) return c.table.find(Op::kForward, stage, microbatch, part);
  const std::int32_t whole = c.table.find(Op::kBackward, stage, microbatch, part);
  return whole != ActionTable::kNone ? whole : c.table.find(Op::kInputGrad, stage, microbatch, part);
}

void check_send(const RuleContext& c, int r, std::int64_t i, const Action& a, std::int32_t here, const Direction& route,
                ChannelOrder& order, Findings& found) {
  const int consumer = route.forward ? c.neighbors.successor[a.stage] : c.neighbors.predecessor[a.stage];
  if (consumer < 0 || c.schedule.stages[consumer].rank == r) {
    found.report(r, i, Rule::kUnmatchedMessage,
                 consumer < 0 ? fmt::format("{} has no stage to send to; remove it", to_text(a))
                              : fmt::format("{} is for stage {} on the same rank, which needs no message; remove it",
                                            to_text(a), consumer));
    return;
  }
  const std::int32_t receive = c.table.find(route.receive, consumer, a.microbatch, a.part);
  if (receive == ActionTable::kNone) {
    const Action wanted{.op = route.receive, .part = a.part, .stage = consumer, .microbatch = a.microbatch};
    found.report(r, i, Rule::kUnmatchedMessage,
                 fmt::format("{} is received by nobody; add {} on rank {}", to_text(a), to_text(wanted),
                             c.schedule.stages[consumer].rank));
  } else {
    check_channel_order(c, a, receive, order, found);
  }
  const std::int32_t producer = find_any(c, route.forward, a.stage, a.microbatch, a.part);
  if (producer == ActionTable::kNone || producer > here) {
    found.report(r, i, Rule::kMessageOrder,
                 fmt::format("{} stands ahead of the action that makes what it sends; list it behind", to_text(a)));
  }
}

void check_receive(const RuleContext& c, int r, std::int64_t i, const Action& a, std::int32_t here,
                   const Direction& route, Findings& found) {
  const int producer = route.forward ? c.neighbors.predecessor[a.stage] : c.neighbors.successor[a.stage];
  const bool remote = producer >= 0 && c.schedule.stages[producer].rank != r;
  if (!remote || c.table.find(route.send, producer, a.microbatch, a.part) == ActionTable::kNone) {
    found.report(
        r, i, Rule::kUnmatchedMessage,
        fmt::format("{} waits for a message that nobody sends; {}", to_text(a), remote ? "add its send" : "remove it"));
  }
  const std::int32_t consumer = find_any(c, route.forward, a.stage, a.microbatch, a.part);
  if (consumer != ActionTable::kNone && consumer < here) {
    found.report(r, i, Rule::kMessageOrder,
                 fmt::format("{} stands behind the action that needs it; list it ahead", to_text(a)));
  }
}

/// Checks that an action whose input comes from another rank has the receive for it.
void check_input(const RuleContext& c, int r, std::int64_t i, const Action& a, const Direction& route,
                 Findings& found) {
  const int producer = route.forward ? c.neighbors.predecessor[a.stage] : c.neighbors.successor[a.stage];
  if (producer < 0 || c.schedule.stages[producer].rank == r) return;
  if (c.table.find(route.receive, a.stage, a.microbatch, a.part) == ActionTable::kNone) {
    const Action wanted{.op = route.receive, .part = a.part, .stage = a.stage, .microbatch = a.microbatch};
    found.report(r, i, Rule::kMissingMessage,
                 fmt::format("{} takes its input from rank {}, but {} is missing; add it", to_text(a),
                             c.schedule.stages[producer].rank, to_text(wanted)));
  }
}

}  // namespace

std::vector<Violation> message_violations(const RuleContext& c) {
  Findings found;
  ChannelOrder order{.channels = channels_of(c.schedule, c.neighbors)};
  order.last_receive.assign(order.channels.channels.size(), ActionTable::kNone);
  std::int32_t id = 0;
  for_each_action(c.schedule, [&](int r, std::int64_t i, const Action& a) {
    const std::int32_t here = id++;
    for (const Direction& route : kDirections) {
      if (a.op == route.send) check_send(c, r, i, a, here, route, order, found);
      if (a.op == route.receive) check_receive(c, r, i, a, here, route, found);
      const bool produces = route.forward ? a.op == Op::kForward : gives_input_gradient(a.op);
      if (produces) check_input(c, r, i, a, route, found);
    }
  });
  return found.take();
}

}}  // namespace plumb::schedules
