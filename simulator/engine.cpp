#include "simulator/engine.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/joint_reductions.h"
#include "simulator/deadlock.h"

namespace plumb {
namespace {

constexpr std::int32_t kNone = ActionTable::kNone;
constexpr SimTime kUnknown{-1};

/// When something is free or ready again, and whose doing that is.
struct Ready {
  SimTime time{0};
  std::int32_t action = kNone;
};

/// An issue point: the end of the last compute action listed so far.
struct RankState {
  Ready free;
  std::size_t position = 0;
  std::int32_t waits_for = kNone;  ///< the transfer or collective that the rank is parked for
  Ready unshards;                  ///< the rank's channel of UNSHARD
  Ready reductions;                ///< the rank's channel of REDUCE_GRAD
  std::array<Ready, 4> moves;      ///< those of OFFLOAD, RELOAD, EVICT and LOAD
};

struct StageState {
  Ready parameters;                ///< the last UNSHARD since the last RESHARD
  std::int32_t reduction = kNone;  ///< the last REDUCE_GRAD since the last OPTIMIZER_STEP
};

/// Sends whose receive is not issued yet wait in line (rendezvous only).
struct ChannelState {
  Ready free;
  std::vector<std::int32_t> line;
  std::size_t head = 0;
};

/// The start of one action while its lower bounds come in.
struct Bound {
  SimTime time{0};
  Cause cause;

  void raise(SimTime to, std::int32_t action, Reason reason) {
    if (to > time || cause.action == kNone) {
      time = std::max(time, to);
      cause = {action, reason};
    }
  }
  void raise(const Ready& ready, Reason reason) {
    if (ready.action != kNone) raise(ready.time, ready.action, reason);
  }
};

template <bool kRecordCauses>
class Engine {
 public:
  Engine(const Schedule& schedule, const ActionTable& table, const ActionCosts& costs, Sends sends)
      : schedule_(schedule),
        table_(table),
        costs_(costs),
        sends_(sends),
        neighbors_(stage_neighbors(schedule)),
        ids_(action_ids(schedule)),
        joint_(joint_reductions(schedule)),
        reduction_queues_(schedule, ids_, joint_),
        ranks_(schedule.ranks.size()),
        stages_(schedule.stages.size()),
        channels_(static_cast<std::size_t>(costs.channels)) {
    const auto actions = static_cast<std::size_t>(ids_.first_id.back());
    times_.start.assign(actions, kUnknown);
    times_.end.assign(actions, kUnknown);
    if constexpr (kRecordCauses) times_.causes.resize(actions);
  }

  ActionTimes run() {
    for (int rank = static_cast<int>(ranks_.size()) - 1; rank >= 0; --rank) runnable_.push_back(rank);
    while (!runnable_.empty()) {
      const int rank = runnable_.back();
      runnable_.pop_back();
      advance(rank);
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].position < schedule_.ranks[r].size()) throw deadlock_error(schedule_, sends_);
    }
    if (!reduction_queues_.empty()) throw deadlock_error(schedule_, sends_);
    if constexpr (kRecordCauses) end_receives();
    return std::move(times_);
  }

 private:
  /// Issues the rank's actions until one has to wait for a transfer whose time is not known.
  void advance(int rank) {
    RankState& state = ranks_[rank];
    const std::vector<Action>& actions = schedule_.ranks[rank];
    state.waits_for = kNone;
    while (state.position < actions.size()) {
      const Action& action = actions[state.position];
      const std::int32_t id = ids_.first_id[rank] + static_cast<std::int32_t>(state.position);
      std::size_t issued = 1;
      switch (action.op) {
        case Op::kForward:
        case Op::kBackward:
        case Op::kInputGrad:
        case Op::kWeightGrad:
        case Op::kRecompute:
        case Op::kOptimizerStep:
          issued = action.overlaps_next && state.position + 1 < actions.size() ? 2 : 1;
          if (!compute(state, &action, id, static_cast<int>(issued))) return;
          break;
        case Op::kSendActivation:
        case Op::kSendGradient:
          send(state, action, id);
          break;
        case Op::kRecvActivation:
        case Op::kRecvGradient:
          receive(state, action, id);
          break;
        case Op::kUnshard:
        case Op::kReshard:
          gather_or_drop(state, action, id);
          break;
        case Op::kReduceGrad:
          reduce(state, action, id);
          break;
        default:
          if (!move(state, action, id)) return;
          break;
      }
      state.position += issued;
    }
  }

  /// One action, or an overlapped pair as one. False if it has to wait for a transfer.
  bool compute(RankState& state, const Action* first, std::int32_t first_id, int count) {
    Bound start;
    start.raise(state.free, Reason::kIssue);
    SimTime duration{0};
    for (int i = 0; i < count; ++i) {
      if (!raise_to_inputs(start, first[i], first_id, count, state)) return false;
      start.raise(stages_[first[i].stage].parameters, Reason::kParameters);
      duration += duration_of(costs_, first[i]);
    }
    for (int i = 0; i < count; ++i) {
      record(first_id + i, start, start.time + duration);
      if (first[i].op == Op::kOptimizerStep) stages_[first[i].stage].reduction = kNone;
    }
    state.free = {start.time + duration, first_id};
    return true;
  }

  /// DESIGN.md section 3, rule 2. False if an input is not known yet.
  bool raise_to_inputs(Bound& start, const Action& a, std::int32_t pair_id, int pair_count, RankState& state) {
    const auto after = [&](std::int32_t input, Reason reason) {
      if (input == kNone || (input >= pair_id && input < pair_id + pair_count)) return true;
      if (times_.end[input] == kUnknown) {
        state.waits_for = input;
        return false;
      }
      start.raise(times_.end[input], input, reason);
      return true;
    };
    const auto made_here = [&](Op op, int part) {
      return after(table_.find(op, a.stage, a.microbatch, part), Reason::kData);
    };
    const auto is_back = [&] {
      return after(table_.find(Op::kReload, a.stage, a.microbatch, a.part), Reason::kMoved) &&
             after(table_.find(Op::kLoad, a.stage, a.microbatch, a.part), Reason::kMoved);
    };
    switch (a.op) {
      case Op::kForward:
        return after_neighbor(after, a, neighbors_.predecessor[a.stage], Op::kForward, Op::kForward,
                              Op::kSendActivation) &&
               (a.part == 0 || made_here(Op::kForward, a.part - 1));
      case Op::kBackward:
      case Op::kInputGrad:
        return made_here(Op::kForward, a.part) && made_here(Op::kRecompute, a.part) &&
               after_neighbor(after, a, neighbors_.successor[a.stage], Op::kInputGrad, Op::kBackward,
                              Op::kSendGradient) &&
               made_here(Op::kInputGrad, a.part + 1) && made_here(Op::kBackward, a.part + 1) && is_back();
      case Op::kWeightGrad:
        return made_here(Op::kInputGrad, a.part) && is_back();
      case Op::kRecompute:
        return made_here(Op::kForward, a.part) && is_back();
      case Op::kOptimizerStep:
        return after(stages_[a.stage].reduction, Reason::kReduction);
      default:
        return true;
    }
  }

  /// What a neighbour stage made: delivered by its send, or at hand where it lies on the same rank.
  template <typename After>
  bool after_neighbor(const After& after, const Action& a, int neighbor, Op op, Op other_op, Op send) {
    if (neighbor < 0) return true;
    if (schedule_.stages[neighbor].rank == schedule_.stages[a.stage].rank) {
      return after(table_.find(op, neighbor, a.microbatch, a.part), Reason::kData) &&
             (op == other_op || after(table_.find(other_op, neighbor, a.microbatch, a.part), Reason::kData));
    }
    const std::int32_t transfer = table_.find(send, neighbor, a.microbatch, a.part);
    if (transfer == kNone) {
      const Action missing{.op = send, .part = a.part, .stage = neighbor, .microbatch = a.microbatch};
      throw ScheduleError(fmt::format("{} waits for {}, which rank {} does not list: lower the schedule first",
                                      to_text(a), to_text(missing), schedule_.stages[neighbor].rank));
    }
    return after(transfer, Reason::kMessage);
  }

  void send(const RankState& state, const Action& action, std::int32_t id) {
    const TransferCost& cost = transfer_of(costs_, action);
    if (cost.channel < 0)
      throw ScheduleError(fmt::format("{} has no neighbour to send to: remove it", to_text(action)));
    Bound start;
    start.raise(state.free, Reason::kIssue);
    if (sends_ == Sends::kBuffered) {
      transfer(start, cost, id);
      return;
    }
    record(id, start, kUnknown);
    channels_[cost.channel].line.push_back(id);
    serve_line(cost.channel);
  }

  void receive(const RankState& state, const Action& action, std::int32_t id) {
    Bound start;
    start.raise(state.free, Reason::kIssue);
    record(id, start, kUnknown);
    if (sends_ == Sends::kBuffered) return;
    const bool forward = action.op == Op::kRecvActivation;
    const int producer = (forward ? neighbors_.predecessor : neighbors_.successor)[action.stage];
    if (producer < 0) return;
    serve_line((forward ? costs_.activation_transfer : costs_.gradient_transfer)[producer].channel);
  }

  /// Starts the transfers at the head of the line whose receives are issued.
  void serve_line(int channel_number) {
    ChannelState& channel = channels_[channel_number];
    while (channel.head < channel.line.size()) {
      const std::int32_t id = channel.line[channel.head];
      const ActionPlace place = place_of(ids_, id);
      const Action& action = schedule_.ranks[place.rank][place.position];
      const TransferCost& cost = transfer_of(costs_, action);
      const std::int32_t receive = receive_of(action, cost);
      Bound start = issued(id);
      if (receive != kNone) {
        if (times_.start[receive] == kUnknown) return;
        start.raise(times_.start[receive], receive, Reason::kRendezvous);
      }
      ++channel.head;
      transfer(start, cost, id);
    }
  }

  /// Puts a transfer on its channel and wakes the rank that waits for it.
  void transfer(Bound start, const TransferCost& cost, std::int32_t id) {
    Ready& channel = channels_[cost.channel].free;
    start.raise(channel, Reason::kChannel);
    channel = {start.time + cost.occupied, id};
    record(id, start, channel.time + cost.latency);
    if (ranks_[cost.destination_rank].waits_for == id) runnable_.push_back(cost.destination_rank);
  }

  /// UNSHARD and RESHARD.
  void gather_or_drop(RankState& state, const Action& action, std::int32_t id) {
    Bound start;
    start.raise(state.free, Reason::kIssue);
    Ready& parameters = stages_[action.stage].parameters;
    if (action.op == Op::kUnshard) {
      parameters = hold(state.unshards, start, action, id);
    } else {
      parameters = {};
      record(id, start, start.time + duration_of(costs_, action));
    }
  }

  /// OFFLOAD, RELOAD, EVICT and LOAD: activations leave when F has made them, and come back when they have left. False
  /// if what they wait for is not listed ahead.
  bool move(RankState& state, const Action& action, std::int32_t id) {
    Bound start;
    start.raise(state.free, Reason::kIssue);
    const Op before = action.op == Op::kReload ? Op::kOffload : action.op == Op::kLoad ? Op::kEvict : Op::kForward;
    const std::int32_t input = table_.find(before, action.stage, action.microbatch, action.part);
    if (input != kNone) {
      if (times_.end[input] == kUnknown) {
        state.waits_for = input;
        return false;
      }
      start.raise(times_.end[input], input, before == Op::kForward ? Reason::kData : Reason::kMoved);
    }
    hold(state.moves[static_cast<std::size_t>(action.op) - static_cast<std::size_t>(Op::kOffload)], start, action, id);
    return true;
  }

  /// Takes a channel from the start that it allows, for the action's duration.
  Ready hold(Ready& channel, Bound start, const Action& action, std::int32_t id) {
    start.raise(channel, Reason::kChannel);
    channel = {start.time + duration_of(costs_, action), id};
    record(id, start, channel.time);
    return channel;
  }

  /// REDUCE_GRAD: by itself, or together with those of its stage's copies.
  void reduce(RankState& state, const Action& action, std::int32_t id) {
    Bound start;
    start.raise(state.free, Reason::kIssue);
    stages_[action.stage].reduction = id;
    if (joint_.collective_of.empty()) {
      hold(state.reductions, start, action, id);
      return;
    }
    record(id, start, kUnknown);
    for (const std::int32_t collective : reduction_queues_.issue(id)) reduce_together(joint_.members[collective]);
  }

  /// All are issued and first on their channels: they start and end together. Each blames its own rank where it can.
  void reduce_together(const std::vector<std::int32_t>& members) {
    std::vector<Bound> starts;  // by what each one's rank does
    SimTime longest{0};
    for (const std::int32_t member : members) {
      const ActionPlace place = place_of(ids_, member);
      Bound& start = starts.emplace_back(issued(member));
      start.raise(ranks_[place.rank].reductions, Reason::kChannel);
      longest = std::max(longest, duration_of(costs_, schedule_.ranks[place.rank][place.position]));
    }
    const Bound latest = *std::ranges::max_element(starts, {}, &Bound::time);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int rank = place_of(ids_, members[i]).rank;
      if (starts[i].time < latest.time) starts[i] = {latest.time, {latest.cause.action, Reason::kReduction}};
      ranks_[rank].reductions = {latest.time + longest, members[i]};
      record(members[i], starts[i], latest.time + longest);
      if (ranks_[rank].waits_for == members[i]) runnable_.push_back(rank);
    }
  }

  /// The start that an action's issue allows.
  Bound issued(std::int32_t id) const {
    Bound start{.time = times_.start[id]};
    if constexpr (kRecordCauses) start.cause = times_.causes[id];
    return start;
  }

  std::int32_t receive_of(const Action& send, const TransferCost& cost) const {
    const Op op = send.op == Op::kSendActivation ? Op::kRecvActivation : Op::kRecvGradient;
    return table_.find(op, cost.destination_stage, send.microbatch, send.part);
  }

  void record(std::int32_t id, const Bound& start, SimTime end) {
    times_.start[id] = start.time;
    times_.end[id] = end;
    if constexpr (kRecordCauses) times_.causes[id] = start.cause;
  }

  /// A receive ends at delivery, which may be known only after its issue.
  void end_receives() {
    std::int32_t id = 0;
    for (const auto& actions : schedule_.ranks) {
      for (const Action& action : actions) {
        if (is_send(action.op)) {
          const std::int32_t receive = receive_of(action, transfer_of(costs_, action));
          if (receive != kNone) times_.end[receive] = std::max(times_.start[receive], times_.end[id]);
        }
        ++id;
      }
    }
  }

  const Schedule& schedule_;
  const ActionTable& table_;
  const ActionCosts& costs_;
  Sends sends_;
  StageNeighbors neighbors_;
  ActionIds ids_;
  JointReductions joint_;
  ReductionQueues reduction_queues_;
  std::vector<RankState> ranks_;
  std::vector<StageState> stages_;
  std::vector<ChannelState> channels_;
  std::vector<int> runnable_;  ///< last in, first out
  ActionTimes times_;
};

}  // namespace

ActionTimes action_times(const Schedule& lowered, const ActionTable& table, const ActionCosts& costs, Sends sends,
                         bool record_causes) {
  return record_causes ? Engine<true>(lowered, table, costs, sends).run()
                       : Engine<false>(lowered, table, costs, sends).run();
}

}  // namespace plumb
