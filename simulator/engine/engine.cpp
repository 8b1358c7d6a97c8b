#include "simulator/engine/engine.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/dependencies/channels.h"
#include "schedules/dependencies/weight_messages.h"
#include "schedules/error.h"
#include "schedules/token_bucket.h"

namespace plumb { inline namespace simulator {
namespace {

constexpr std::int32_t kNone = ActionTable::kNone;

/// Applies the recurrence of compiled_schedule.h.
template <typename Time>
inline MomentsIn<Time> advance(Time* registers, const Step& step, const StepCost& cost) {
  return run_step(registers, step, cost, start_of(registers, step, cost));
}

/// Refuses costs under which a step would end after kLatestMoment.
void require_early_moments(const CompiledSchedule& compiled, const std::vector<StepCost>& costs) {
  using Picoseconds = std::chrono::duration<double, SimTime::period>;
  Picoseconds total{0};
  bool may_be_late = false;
  for (std::size_t kind = 0; kind < costs.size(); ++kind) {
    const StepCost& cost = costs[kind];
    may_be_late = may_be_late || cost.duration > kLongestCost || cost.delivered > kLongestCost;
    total += static_cast<double>(compiled.kinds[kind].steps) * (Picoseconds{cost.duration} + cost.delivered);
  }
  if (!may_be_late && total <= Picoseconds{kLatestMoment}) return;
  std::vector<Picoseconds> registers(compiled.registers, Picoseconds{0});
  for (const Step& step : compiled.steps) {
    const StepCost& cost = costs[step.kind];
    const Picoseconds departure = advance(registers.data(), step, cost).departure;
    if (departure + cost.delivered > Picoseconds{kLatestMoment})
      refuse_late_moment("the step", longest_part(compiled, costs));
  }
}

/// Runs the steps and records the cause of each register's time.
class Recorder {
 public:
  Recorder(const CompiledSchedule& compiled, std::size_t actions)
      : compiled_(compiled),
        times_(compiled.registers),
        causes_(compiled.registers),
        cards_(static_cast<std::size_t>(compiled.ranks)) {
    result_.start.resize(actions);
    result_.end.resize(actions);
    result_.causes.resize(actions);
  }

  /// Returns the cost of a step whose message leaves by its rank's card.
  StepCost by_card(std::size_t i, StepCost cost, SimTime burst) {
    const Step& step = compiled_.steps[i];
    const StepKind& kind = compiled_.kinds[step.kind];
    if (!kind.sends) return cost;
    Card& card = cards_[kind.rank];
    if (card.channel == kUnreadRegister) card.channel = cost.channel;
    cost.channel = card.channel;
    const SimTime ready = start_of(times_.data(), step, cost) + cost.duration;
    const SimTime latency = cost.delivered - cost.occupied;
    const SimTime departure = std::max(ready, card.bucket.free_at());
    cost.occupied = card.bucket.pass(ready, cost.occupied, burst) - departure;
    cost.delivered = cost.occupied + latency;
    return cost;
  }

  void record(std::size_t i, const StepCost& cost) {
    const Step& step = compiled_.steps[i];
    const StepKind& kind = compiled_.kinds[step.kind];
    const std::int32_t id = compiled_.action_ids[i];
    const std::int32_t send_id = compiled_.send_ids[i];
    const Cause cause = cause_of_later(cost.from, step.input);
    const SimTime channel_free = times_[cost.channel];
    const Cause channel_cause = causes_[cost.channel];
    const Moments moments = advance(times_.data(), step, cost);
    if (moments.departure + cost.delivered > kLatestMoment) refuse_late_moment("the step");
    if (kind.starts_inside) {
      const bool waited = channel_cause.action != kNone && channel_free > moments.end;
      put(id, moments.departure, moments.departure + cost.delivered,
          waited ? channel_cause : Cause{send_id, Reason::kData});
      causes_[cost.channel] = {id, Reason::kChannel};
      causes_[step.output] = {id, kind.output_reason};
      return;
    }
    const Cause done = kind.passes_cause || id == kNone ? cause : Cause{id, Reason::kIssue};
    if (id != kNone) {
      const bool pair = kind.occupies_rank && kind.actions.size() > 1;
      const SimTime latency = kind.sends ? SimTime{0} : cost.delivered;  // of a message of weights
      for (std::int32_t action = id; action <= id + (pair ? 1 : 0); ++action)
        put(action, moments.start, moments.end + latency, cause);
    }
    causes_[cost.to] = done;
    causes_[step.output] = {id, kind.output_reason};
    if (kind.passes_cause)
      causes_[step.output] = {cause.action, kind.output_reason == Reason::kIssue ? cause.reason : kind.output_reason};
    if (!kind.actions.empty() && !kind.occupies_rank) causes_[cost.channel] = {id, Reason::kChannel};
    if (!kind.sends) return;
    const bool waited = channel_cause.action != kNone && (channel_free > moments.end || done.action == kNone);
    put(send_id, moments.departure, moments.departure + cost.delivered, waited ? channel_cause : done);
    causes_[cost.channel] = {send_id, Reason::kChannel};
    causes_[step.output] = {send_id, Reason::kMessage};
  }

  ActionTimes take() { return std::move(result_); }

 private:
  /// The card by which all messages of a rank leave; its register is that of the channel first used.
  struct Card {
    Register channel = kUnreadRegister;
    TokenBucket bucket;
  };

  /// Returns the cause of the later of two registers, or of the first where they are equal.
  Cause cause_of_later(Register first, Register second) const {
    const bool is_second =
        causes_[second].action != kNone && (causes_[first].action == kNone || times_[second] > times_[first]);
    return causes_[is_second ? second : first];
  }
  void put(std::int32_t id, SimTime start, SimTime end, const Cause& cause) {
    result_.start[id] = start;
    result_.end[id] = end;
    result_.causes[id] = cause;
  }

  const CompiledSchedule& compiled_;
  std::vector<SimTime> times_;
  std::vector<Cause> causes_;
  std::vector<Card> cards_;  // [rank]
  ActionTimes result_;
};

/// Receives are issued when the compute action ahead of them ends; nothing waits for that if sends are buffered.
void issue_receives(const Schedule& schedule, ActionTimes& times) {
  std::int32_t id = 0;
  for (const auto& actions : schedule.ranks) {
    SimTime free{0};
    Cause cause;
    bool second_of_pair = false;
    for (const Action& action : actions) {
      if (is_recv(action.op) || receives_weights(action.op)) {
        times.start[id] = free;
        times.causes[id] = cause;
      } else if (is_compute(action.op)) {
        free = times.end[id];
        if (!second_of_pair) cause = {id, Reason::kIssue};
      }
      second_of_pair = action.overlaps_next;
      ++id;
    }
  }
}

/// A receive ends at delivery, which may be known only after its issue.
void end_receives(const Schedule& schedule, const ActionTable& table, const ActionCosts& costs, ActionTimes& times) {
  const WeightMessages weights = weight_messages(schedule);
  std::int32_t id = 0;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      if (sends_weights(action.op) && weights.partner[id] != kNone)
        times.end[weights.partner[id]] = std::max(times.start[weights.partner[id]], times.end[id]);
      if (is_send(action.op)) {
        const Op op = action.op == Op::kSendActivation ? Op::kRecvActivation : Op::kRecvGradient;
        const int consumer = transfer_of(costs, action).destination_stage;
        const std::int32_t receive = table.find(op, consumer, action.microbatch, action.part);
        if (receive != kNone) times.end[receive] = std::max(times.start[receive], times.end[id]);
      }
      ++id;
    }
  }
}

}  // namespace

std::vector<StepCost> step_costs(const CompiledSchedule& compiled, const ActionCosts& costs) {
  std::vector<StepCost> result;
  result.reserve(compiled.kinds.size());
  for (const StepKind& kind : compiled.kinds) {
    StepCost cost{.from = kind.from, .to = kind.to, .channel = kind.channel};
    if (kind.lasts_longest || kind.actions.size() < 2) {
      for (const Action& action : kind.actions) cost.duration = std::max(cost.duration, duration_of(costs, action));
    } else {
      cost.duration = pair_duration(costs, kind.actions[0], kind.actions[1]);
    }
    if (kind.starts_inside) {
      cost.occupied = cost.delivered = cost.duration;
      cost.duration = bucket_offset(costs, kind.host, kind.actions.front());
    }
    if (!kind.actions.empty() && sends_weights(kind.actions.front().op))
      cost.delivered = weight_latency(costs, kind.actions.front());
    if (kind.sends) {
      const TransferCost& transfer = transfer_of(costs, kind.send);
      cost.occupied = transfer.occupied;
      cost.delivered = transfer.occupied + transfer.latency;
    }
    result.push_back(cost);
  }
  require_early_moments(compiled, result);
  return result;
}

std::string longest_part(const CompiledSchedule& compiled, const std::vector<StepCost>& costs) {
  const auto lasts = [&](std::size_t kind) {
    const SimTime each = std::max(costs[kind].duration, costs[kind].delivered);
    return static_cast<double>(compiled.kinds[kind].steps) * seconds(each);
  };
  std::size_t longest = 0;
  for (std::size_t kind = 1; kind < costs.size(); ++kind) longest = lasts(kind) > lasts(longest) ? kind : longest;
  if (costs.empty()) return "";
  const StepKind& kind = compiled.kinds[longest];
  const bool is_message = kind.sends && costs[longest].delivered > costs[longest].duration;
  const Action& action = is_message || kind.actions.empty() ? kind.send : kind.actions.front();
  return fmt::format("most of it {} of stage {}", op_name(action.op), action.stage);
}

StepTimes step_times(const CompiledSchedule& compiled, const std::vector<StepCost>& costs, StepTimes reused) {
  StepTimes times = std::move(reused);
  times.start.resize(compiled.steps.size());
  times.registers.assign(compiled.registers, SimTime{0});
  SimTime* const registers = times.registers.data();
  SimTime* start = times.start.data();
  for (const Step& step : compiled.steps) *start++ = advance(registers, step, costs[step.kind]).start;
  return times;
}

std::vector<Moments> step_moments(const CompiledSchedule& compiled, const std::vector<StepCost>& costs) {
  std::vector<SimTime> registers(compiled.registers, SimTime{0});
  std::vector<Moments> moments;
  moments.reserve(compiled.steps.size());
  for (const Step& step : compiled.steps) moments.push_back(advance(registers.data(), step, costs[step.kind]));
  return moments;
}

std::vector<SimTime> burst_times(const Schedule& lowered, const CompiledSchedule& compiled, const CostTable& costs,
                                 std::int64_t burst_bytes) {
  if (burst_bytes < 0) throw SpecError(fmt::format("a burst of {} bytes: give 0 for none", burst_bytes));
  if (burst_bytes == 0) return {};
  const StageNeighbors neighbors = stage_neighbors(lowered);
  std::vector<SimTime> bursts;
  for (const StepKind& kind : compiled.kinds) {
    bursts.emplace_back(0);
    if (!kind.sends) continue;
    const auto& next = kind.send.op == Op::kSendActivation ? neighbors.successor : neighbors.predecessor;
    const int destination = next[static_cast<std::size_t>(kind.send.stage)];
    if (destination < 0) continue;
    const LinkCost& link = link_between(costs, kind.rank, lowered.stages[static_cast<std::size_t>(destination)].rank);
    bursts.back() = to_sim_time(Seconds{static_cast<double>(burst_bytes) / link.bytes_per_second});
  }
  return bursts;
}

ActionTimes action_times(const Schedule& lowered, const ActionTable& table, const CompiledSchedule& compiled,
                         const ActionCosts& costs, const std::vector<SimTime>& bursts) {
  const std::vector<StepCost> by_kind = step_costs(compiled, costs);
  Recorder recorder(compiled, static_cast<std::size_t>(action_count(lowered)));
  for (std::size_t i = 0; i < compiled.steps.size(); ++i) {
    const std::int32_t kind = compiled.steps[i].kind;
    recorder.record(i, bursts.empty() ? by_kind[kind] : recorder.by_card(i, by_kind[kind], bursts[kind]));
  }
  ActionTimes times = recorder.take();
  if (compiled.sends == Sends::kBuffered) issue_receives(lowered, times);
  end_receives(lowered, table, costs, times);
  return times;
}

}}  // namespace plumb::simulator
