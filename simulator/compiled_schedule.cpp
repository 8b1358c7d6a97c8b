#include "simulator/compiled_schedule.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "schedules/action_table.h"
#include "schedules/channels.h"
#include "schedules/error.h"
#include "schedules/joint_reductions.h"
#include "simulator/deadlock.h"
#include "simulator/step_kinds.h"

namespace plumb {
namespace {

constexpr std::int32_t kNone = ActionTable::kNone;

/// What is known of one (stage, micro-batch, slice) while the dry run goes on.
struct Unit {
  std::uint16_t done = 0;    ///< bits of the operations that have run
  std::uint16_t needed = 0;  ///< bits of those that somebody on the rank needed before they ran, or that never come
};

/// Of F, B, I, W and R, the first five, and of OFFLOAD, RELOAD, EVICT and LOAD, the last four.
constexpr unsigned bit_of(Op op) {
  const auto first_move = static_cast<unsigned>(Op::kOffload);
  const auto number = static_cast<unsigned>(op);
  return 1U << (number < first_move ? number : number - first_move + 5);
}
constexpr bool has_bit(Op op) {
  return op <= Op::kRecompute || op >= Op::kOffload;
}

/// A message's way from its send to its consumer: 0 nothing yet, otherwise the register of its delivery.
using Deliveries = std::vector<Register>;

/// Rendezvous: what is known of a receive.
constexpr std::int32_t kNotListed = -1;
constexpr std::int32_t kNotIssued = 0;  // larger: the register of its issue

struct WaitingSend {
  std::int32_t id = 0;
  Action send;
  Register issued = 0;
};

struct Direction {
  Deliveries deliveries;               ///< [unit of the consumer]
  std::vector<std::int32_t> receives;  ///< [unit of the consumer] rendezvous only
};

/// Where activations are on their way out and back: registers, zero while they are not.
struct MovedUnit {
  std::array<Register, 2> gone{};  ///< the ends of OFFLOAD and EVICT
  std::array<Register, 2> back{};  ///< the ends of RELOAD and LOAD
};

struct RankState {
  std::size_t position = 0;
  std::size_t sent_position = 0;        ///< of the send that its last compute step has taken along; 0 for none
  const Register* waits_for = nullptr;  ///< the delivery or the end of a collective that the rank is parked for
  Register unshards = kZeroRegister;    ///< its channel of UNSHARD
  Register reductions = kZeroRegister;  ///< its channel of REDUCE_GRAD
  std::array<Register, 4> moves{};      ///< its channels of OFFLOAD, RELOAD, EVICT and LOAD
  Register horizon = kZeroRegister;     ///< the latest end of what nobody waits for
};

struct StageState {
  Register parameters = kZeroRegister;  ///< the end of its last UNSHARD
  bool must_gather = false;             ///< no compute action has waited for `parameters` yet
  Register reduction = kZeroRegister;   ///< the end of its last REDUCE_GRAD
  bool must_reduce = false;             ///< no OPTIMIZER_STEP has waited for `reduction` yet
  int reductions_under_way = 0;         ///< issued, and waiting for copies
  Register joint = kZeroRegister;       ///< when the stage is ready for a collective of copies
};

/// A REDUCE_GRAD that is issued and waits for those of the stage's copies.
struct WaitingReduction {
  Action action;
  Register issued = kZeroRegister;
};

class Compiler {
 public:
  Compiler(const Schedule& schedule, Sends sends)
      : schedule_(schedule),
        neighbors_(stage_neighbors(schedule)),
        channels_(channels_of(schedule, neighbors_)),
        ids_(action_ids(schedule)),
        joint_(joint_reductions(schedule)),
        reduction_queues_(schedule, ids_, joint_),
        kinds_(schedule),
        parts_(kinds_.parts()),
        ranks_(schedule.ranks.size()),
        stages_(schedule.stages.size()) {
    const std::size_t units = schedule.stages.size() * static_cast<std::size_t>(schedule.microbatches) * parts_;
    units_.resize(units);
    for (Direction& direction : directions_) direction.deliveries.assign(units, kZeroRegister);
    compiled_.sends = sends;
    compiled_.ranks = static_cast<int>(schedule.ranks.size());
    compiled_.registers = rank_register(compiled_.ranks);
    compiled_.first_steps.assign(schedule.ranks.size(), -1);
    for (std::size_t c = 0; c < channels_.channels.size(); ++c) channel_registers_.push_back(new_register());
    lines_.resize(channels_.channels.size());
    if (sends == Sends::kRendezvous) list_receives();
    const auto steps = static_cast<std::size_t>(kinds_.compute_actions());
    compiled_.steps.reserve(steps);
    compiled_.action_ids.reserve(steps);
    compiled_.send_ids.reserve(steps);
  }

  CompiledSchedule run() {
    for (int rank = 0; rank < compiled_.ranks; ++rank) runnable_.push_back(rank);
    while (!runnable_.empty()) {
      const int rank = runnable_.front();
      runnable_.pop_front();
      take_turn(rank);
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].position < schedule_.ranks[r].size()) fail(r);
    }
    if (!reduction_queues_.empty()) throw deadlock_error(schedule_, compiled_.sends);
    compiled_.kinds = kinds_.take();
    return std::move(compiled_);
  }

 private:
  void list_receives() {
    for (Direction& direction : directions_) direction.receives.assign(units_.size(), kNotListed);
    for (const auto& actions : schedule_.ranks) {
      for (const Action& a : actions) {
        if (is_recv(a.op)) directions_[a.op == Op::kRecvGradient].receives[unit_of(a)] = kNotIssued;
      }
    }
  }

  /// One compute action and what stands behind it up to the next. The rank comes to the end of the queue again unless
  /// it has to wait for a message.
  void take_turn(int rank) {
    RankState& state = ranks_[rank];
    const std::vector<Action>& actions = schedule_.ranks[rank];
    state.waits_for = nullptr;
    bool has_computed = false;
    while (state.position < actions.size()) {
      const Action& action = actions[state.position];
      if (is_compute(action.op)) {
        if (has_computed) return runnable_.push_back(rank);
        const int count = action.overlaps_next && state.position + 1 < actions.size() ? 2 : 1;
        if (!compute(rank, &action, count)) return;
        has_computed = true;
        state.position += static_cast<std::size_t>(count);
        continue;
      }
      const std::int32_t id = ids_.first_id[rank] + static_cast<std::int32_t>(state.position);
      if (is_send(action.op)) {
        if (state.sent_position != state.position) send(rank, action, id);
      } else if (is_recv(action.op)) {
        if (compiled_.sends == Sends::kRendezvous) receive(rank, action, id);
      } else {
        beside_compute(rank, action, id);
      }
      ++state.position;
    }
  }

  /// One action, or an overlapped pair as one. False if an input from another rank is not there yet.
  bool compute(int rank, const Action* first, int count) {
    RankState& state = ranks_[rank];
    for (int i = 0; i < count; ++i) {
      const Register* input = missing_input(first[i]);
      if (input == nullptr) continue;
      state.waits_for = input;
      return false;
    }
    for (int i = 0; i < count; ++i) finish(first[i]);
    for (int i = 0; i < count; ++i) require_own_inputs(first[i]);

    std::int32_t sent = kNone;
    const Action* send = nullptr;
    if (compiled_.sends == Sends::kBuffered) send = send_behind(rank, first + count);
    const std::uint32_t kind = kinds_.compute({first, first + count}, recomputed(first, count), send, [&] {
      return StepKind{.occupies_rank = true,
                      .rank = rank,
                      .from = rank_register(rank),
                      .to = rank_register(rank),
                      .channel = send == nullptr ? rank_register(rank) : channel_register(*send)};
    });
    const Register input = joined_input(first, count);
    const std::int32_t id = ids_.first_id[rank] + static_cast<std::int32_t>(state.position);
    Register output = kUnreadRegister;
    if (send != nullptr) {
      state.sent_position = static_cast<std::size_t>(send - schedule_.ranks[rank].data());
      sent = ids_.first_id[rank] + static_cast<std::int32_t>(state.sent_position);
      output = take_register();
    }
    std::int64_t& first_step = compiled_.first_steps[rank];
    if (first_step < 0) first_step = static_cast<std::int64_t>(compiled_.steps.size());
    add_step({.kind = kind, .input = input, .output = output}, id, sent);
    if (send != nullptr) deliver(*send, output);
    return true;
  }

  /// Where the input from another rank is delivered; null if the action takes none.
  Register* delivery_for(const Action& a) {
    const bool forward = a.op == Op::kForward;
    if (!forward && !gives_input_gradient(a.op)) return nullptr;
    const int neighbor = (forward ? neighbors_.predecessor : neighbors_.successor)[a.stage];
    if (neighbor < 0 || schedule_.stages[neighbor].rank == schedule_.stages[a.stage].rank) return nullptr;
    return &directions_[forward ? 0 : 1].deliveries[unit_of(a)];
  }

  /// What an action needs of another rank and is not there yet; null if it may run.
  const Register* missing_input(const Action& a) {
    const Register* delivery = delivery_for(a);
    if (delivery != nullptr && *delivery == kZeroRegister) return delivery;
    const StageState& stage = stages_[a.stage];
    return a.op == Op::kOptimizerStep && stage.reductions_under_way > 0 ? &stage.reduction : nullptr;
  }

  void finish(const Action& a) {
    if (!has_bit(a.op)) return;
    Unit& unit = units_[unit_of(a)];
    if ((unit.needed & bit_of(a.op)) != 0) throw deadlock_error(schedule_, compiled_.sends);
    unit.done |= static_cast<std::uint16_t>(bit_of(a.op));
  }

  /// Marks what an action takes from its own rank and is not done: it must not be listed later.
  void require_own_inputs(const Action& a) {
    const auto require = [&](int stage, int part, unsigned bits) {
      if (part >= parts_) return;
      Unit& unit = units_[unit_of(stage, a.microbatch, part)];
      unit.needed |= static_cast<std::uint16_t>(bits & ~unit.done);
    };
    constexpr unsigned kGradients = bit_of(Op::kBackward) | bit_of(Op::kInputGrad);
    const auto local = [&](int neighbor) {
      return neighbor >= 0 && schedule_.stages[neighbor].rank == schedule_.stages[a.stage].rank;
    };
    constexpr unsigned kBack = bit_of(Op::kReload) | bit_of(Op::kLoad);
    switch (a.op) {
      case Op::kForward:
        if (const int before = neighbors_.predecessor[a.stage]; local(before))
          require(before, a.part, bit_of(Op::kForward));
        if (a.part > 0) require(a.stage, a.part - 1, bit_of(Op::kForward));
        break;
      case Op::kBackward:
      case Op::kInputGrad:
        require(a.stage, a.part, bit_of(Op::kForward) | bit_of(Op::kRecompute) | kBack);
        if (const int behind = neighbors_.successor[a.stage]; local(behind)) require(behind, a.part, kGradients);
        require(a.stage, a.part + 1, kGradients);
        break;
      case Op::kWeightGrad:
        require(a.stage, a.part, bit_of(Op::kInputGrad) | kBack);
        break;
      case Op::kRecompute:
        require(a.stage, a.part, bit_of(Op::kForward) | kBack);
        break;
      case Op::kOffload:
      case Op::kEvict:
        require(a.stage, a.part, bit_of(Op::kForward));
        break;
      case Op::kReload:
        require(a.stage, a.part, bit_of(Op::kOffload));
        break;
      case Op::kLoad:
        require(a.stage, a.part, bit_of(Op::kEvict));
        break;
      default:
        break;
    }
  }

  std::array<bool, 2> recomputed(const Action* first, int count) const {
    std::array<bool, 2> result{};
    for (int i = 0; i < count; ++i) {
      result[i] = gives_input_gradient(first[i].op) && (units_[unit_of(first[i])].done & bit_of(Op::kRecompute)) != 0;
    }
    return result;
  }

  /// The first send ahead of the rank's next compute action: it is issued when the compute action before it ends.
  const Action* send_behind(int rank, const Action* next) const {
    const std::vector<Action>& actions = schedule_.ranks[rank];
    for (const Action* end = actions.data() + actions.size(); next != end && !is_compute(next->op); ++next) {
      if (is_send(next->op)) return next;
    }
    return nullptr;
  }

  /// The register of all inputs that are not implied by the rank's order; several are joined first.
  Register joined_input(const Action* first, int count) {
    joined_.clear();
    for (int i = 0; i < count; ++i) {
      const Action& a = first[i];
      StageState& stage = stages_[a.stage];
      if (Register* delivery = delivery_for(a); delivery != nullptr) use_up(*delivery);
      if (!moved_.empty() && has_microbatch(a.op) && a.op != Op::kForward) {
        for (Register& back : moved_[unit_of(a)].back) use_up(back);
      }
      if (a.op == Op::kOptimizerStep && std::exchange(stage.must_reduce, false)) joined_.push_back(stage.reduction);
      if (std::exchange(stage.must_gather, false)) joined_.push_back(stage.parameters);
    }
    if (joined_.empty()) return kZeroRegister;
    if (joined_.size() == 1) return joined_.front();
    return join(joined_);
  }

  /// Takes a register as an input of the action at hand; it is free behind it.
  void use_up(Register& input) {
    if (input == kZeroRegister) return;
    joined_.push_back(input);
    free_registers_.push_back(input);
    input = kZeroRegister;
  }

  Register join(const std::vector<Register>& inputs) {
    join_register_ = held(join_register_);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Register from = i == 0 ? kZeroRegister : join_register_;
      add_step({.kind = kinds_.copy(from, join_register_), .input = inputs[i]}, kNone, kNone);
    }
    return join_register_;
  }

  void send(int rank, const Action& action, std::int32_t id) {
    if (compiled_.sends == Sends::kBuffered) return transfer(rank_register(rank), kZeroRegister, action, id);
    std::vector<WaitingSend>& line = lines_[checked_channel(action)];
    const std::int32_t receive = receive_of(action);
    if (line.empty() && receive != kNotIssued) {
      transfer(rank_register(rank), issue_register(action), action, id);
      return;
    }
    const Register issued = take_register();
    add_step({.kind = kinds_.copy(rank_register(rank), kUnreadRegister), .output = issued}, kNone, kNone);
    line.push_back({.id = id, .send = action, .issued = issued});
  }

  void receive(int rank, const Action& action, std::int32_t id) {
    std::int32_t& known = directions_[action.op == Op::kRecvGradient].receives[unit_of(action)];
    if (known != kNotIssued) return;
    const Register issued = take_register();
    known = static_cast<std::int32_t>(issued);
    add_step({.kind = kinds_.issue_of_receive(rank), .output = issued}, id, kNone);
    const bool forward = action.op == Op::kRecvActivation;
    const int producer = (forward ? neighbors_.predecessor : neighbors_.successor)[action.stage];
    if (producer >= 0) serve_line((forward ? channels_.of_activations : channels_.of_gradients)[producer]);
  }

  /// Starts the transfers at the head of the line whose receives are issued.
  void serve_line(int channel) {
    std::vector<WaitingSend>& line = lines_[channel];
    std::size_t served = 0;
    for (; served < line.size() && receive_of(line[served].send) != kNotIssued; ++served) {
      const WaitingSend& waiting = line[served];
      send_register_ = held(send_register_);
      add_step({.kind = kinds_.copy(kZeroRegister, send_register_), .input = waiting.issued}, kNone, kNone);
      free_registers_.push_back(waiting.issued);
      transfer(send_register_, issue_register(waiting.send), waiting.send, waiting.id);
    }
    line.erase(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(served));
  }

  std::int32_t receive_of(const Action& send) {
    const int consumer = consumer_of(send);
    return directions_[send.op == Op::kSendGradient].receives[unit_of(consumer, send.microbatch, send.part)];
  }

  /// Where the issue of the send's receive stands, free for reuse afterwards; the zero register without a receive.
  Register issue_register(const Action& send) {
    const std::int32_t receive = receive_of(send);
    if (receive <= 0) return kZeroRegister;
    free_registers_.push_back(static_cast<Register>(receive));
    return static_cast<Register>(receive);
  }

  /// A send that takes its channel once `issued` and `input` allow it.
  void transfer(Register issued, Register input, const Action& send, std::int32_t id) {
    const std::uint32_t kind = kinds_.transfer(send, issued, channel_register(send));
    const Register output = take_register();
    add_step({.kind = kind, .input = input, .output = output}, kNone, id);
    deliver(send, output);
  }

  /// Hands a delivery to its consumer and wakes the rank that waits for it.
  void deliver(const Action& send, Register delivered) {
    const int consumer = consumer_of(send);
    Register& delivery =
        directions_[send.op == Op::kSendGradient].deliveries[unit_of(consumer, send.microbatch, send.part)];
    if (delivery != kZeroRegister) return;
    delivery = delivered;
    const int rank = schedule_.stages[consumer].rank;
    if (ranks_[rank].waits_for == &delivery) wake(rank);
  }

  void wake(int rank) {
    ranks_[rank].waits_for = nullptr;
    runnable_.push_back(rank);
  }

  void beside_compute(int rank, const Action& action, std::int32_t id) {
    RankState& state = ranks_[rank];
    StageState& stage = stages_[action.stage];
    switch (action.op) {
      case Op::kUnshard:
        stage.parameters = held(stage.parameters);
        collective(rank, action, id, state.unshards, stage.parameters, Reason::kParameters);
        stage.must_gather = true;
        break;
      case Op::kReduceGrad:
        reduce(rank, action, id);
        break;
      case Op::kReshard:
        stage.must_gather = false;
        drop(rank, action, id);
        break;
      default:
        move(rank, action, id);
        break;
    }
  }

  /// Takes a channel of the rank from the moment at which it is issued and the channel is free.
  void collective(int rank, const Action& action, std::int32_t id, Register& channel, Register end, Reason reason) {
    channel = held(channel);
    const std::uint32_t kind = kinds_.beside(action, [&] {
      return StepKind{
          .rank = rank, .from = rank_register(rank), .to = channel, .channel = channel, .output_reason = reason};
    });
    add_step({.kind = kind, .input = channel, .output = end}, id, kNone);
  }

  /// RESHARD: nobody waits for it.
  void drop(int rank, const Action& action, std::int32_t id) {
    Register& horizon = ranks_[rank].horizon;
    horizon = held(horizon);
    const std::uint32_t kind =
        kinds_.beside(action, [&] { return StepKind{.rank = rank, .from = rank_register(rank), .channel = horizon}; });
    add_step({.kind = kind}, id, kNone);
  }

  /// OFFLOAD, RELOAD, EVICT and LOAD: activations come back when they have left.
  void move(int rank, const Action& action, std::int32_t id) {
    finish(action);
    require_own_inputs(action);
    if (moved_.empty()) moved_.resize(units_.size());
    MovedUnit& unit = moved_[unit_of(action)];
    const std::size_t way = action.op == Op::kEvict || action.op == Op::kLoad ? 1 : 0;
    Register& channel =
        ranks_[rank].moves[static_cast<std::size_t>(action.op) - static_cast<std::size_t>(Op::kOffload)];
    channel = held(channel);
    joined_.clear();
    if (brings_back(action.op)) use_up(unit.gone[way]);
    joined_.push_back(channel);
    const Register input = joined_.size() == 1 ? channel : join(joined_);
    const std::uint32_t kind = kinds_.beside(action, [&] {
      return StepKind{.rank = rank,
                      .from = rank_register(rank),
                      .to = channel,
                      .channel = channel,
                      .output_reason = Reason::kMoved};
    });
    Register& end = (brings_back(action.op) ? unit.back : unit.gone)[way];
    if (end == kZeroRegister) end = take_register();
    add_step({.kind = kind, .input = input, .output = end}, id, kNone);
  }

  /// REDUCE_GRAD: by itself, or together with those of its stage's copies.
  void reduce(int rank, const Action& action, std::int32_t id) {
    StageState& stage = stages_[action.stage];
    stage.reduction = held(stage.reduction);
    stage.must_reduce = true;
    if (joint_.collective_of.empty())
      return collective(rank, action, id, ranks_[rank].reductions, stage.reduction, Reason::kReduction);

    const Register issued = take_register();
    add_step({.kind = kinds_.copy(rank_register(rank), kUnreadRegister), .output = issued}, kNone, kNone);
    waiting_reductions_[id] = {.action = action, .issued = issued};
    ++stage.reductions_under_way;
    for (const std::int32_t collective : reduction_queues_.issue(id)) reduce_together(joint_.members[collective]);
  }

  /// All are issued and first on their channels: they start and end together. Each blames its own rank where it can,
  /// otherwise what the last of the others waited for.
  void reduce_together(const std::vector<std::int32_t>& members) {
    const Register latest = take_register();
    std::vector<Action> actions;
    for (const std::int32_t id : members) {
      const WaitingReduction& waiting = waiting_reductions_.at(id);
      StageState& stage = stages_[waiting.action.stage];
      Register& channel = ranks_[schedule_.stages[waiting.action.stage].rank].reductions;
      channel = held(channel);
      stage.joint = held(stage.joint);
      add_step({.kind = kinds_.copy(kZeroRegister, stage.joint), .input = waiting.issued}, kNone, kNone);
      add_step({.kind = kinds_.copy(stage.joint, stage.joint), .input = channel}, kNone, kNone);
      actions.push_back(waiting.action);
    }
    join_copies(actions, latest);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int rank = schedule_.stages[actions[i].stage].rank;
      StageState& stage = stages_[actions[i].stage];
      const std::uint32_t kind = kinds_.joint(actions[i], actions, [&] {
        return StepKind{.rank = rank,
                        .from = stage.joint,
                        .to = ranks_[rank].reductions,
                        .channel = ranks_[rank].reductions,
                        .output_reason = Reason::kReduction};
      });
      add_step({.kind = kind, .input = latest, .output = stage.reduction}, members[i], kNone);
      if (--stage.reductions_under_way == 0 && ranks_[rank].waits_for == &stage.reduction) wake(rank);
      free_registers_.push_back(waiting_reductions_.at(members[i]).issued);
      waiting_reductions_.erase(members[i]);
    }
    free_registers_.push_back(latest);
  }

  /// The last moment at which one of the copies is ready goes to `latest`.
  void join_copies(const std::vector<Action>& copies, Register latest) {
    join_register_ = held(join_register_);
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const Register from = i == 0 ? kZeroRegister : join_register_;
      add_step({.kind = kinds_.copy(from, join_register_, Reason::kReduction),
                .input = stages_[copies[i].stage].joint,
                .output = latest},
               kNone, kNone);
    }
  }

  void add_step(const Step& step, std::int32_t action, std::int32_t sent) {
    kinds_.count(step.kind);
    compiled_.steps.push_back(step);
    compiled_.action_ids.push_back(action);
    compiled_.send_ids.push_back(sent);
  }

  Register new_register() { return compiled_.registers++; }
  /// The register itself, or a new one where there is none yet.
  Register held(Register known) { return known == kZeroRegister ? new_register() : known; }
  Register take_register() {
    if (free_registers_.empty()) return new_register();
    const Register taken = free_registers_.back();
    free_registers_.pop_back();
    return taken;
  }

  int checked_channel(const Action& send) const {
    const int channel = channel_of(channels_, send);
    if (channel < 0) throw ScheduleError(fmt::format("{} has no neighbour to send to: remove it", to_text(send)));
    return channel;
  }
  Register channel_register(const Action& send) const { return channel_registers_[checked_channel(send)]; }

  int consumer_of(const Action& send) const {
    return (send.op == Op::kSendActivation ? neighbors_.successor : neighbors_.predecessor)[send.stage];
  }

  std::size_t unit_of(int stage, int microbatch, int part) const {
    return (static_cast<std::size_t>(stage) * static_cast<std::size_t>(schedule_.microbatches) +
            static_cast<std::size_t>(microbatch)) *
               static_cast<std::size_t>(parts_) +
           static_cast<std::size_t>(part);
  }
  std::size_t unit_of(const Action& a) const { return unit_of(a.stage, a.microbatch, a.part); }

  /// Throws the reason why the rank did not get to its end.
  [[noreturn]] void fail(std::size_t rank) const {
    for (std::size_t r = rank; r < ranks_.size(); ++r) {
      if (ranks_[r].position < schedule_.ranks[r].size()) refuse_missing_message(r);
    }
    throw deadlock_error(schedule_, compiled_.sends);
  }

  void refuse_missing_message(std::size_t rank) const {
    const std::vector<Action>& actions = schedule_.ranks[rank];
    const Action* first = &actions[ranks_[rank].position];
    const int count = first->overlaps_next ? 2 : 1;
    for (int i = 0; i < count && first + i < actions.data() + actions.size(); ++i) {
      const Action& a = first[i];
      const bool forward = a.op == Op::kForward;
      if (!forward && !gives_input_gradient(a.op)) continue;
      const int neighbor = (forward ? neighbors_.predecessor : neighbors_.successor)[a.stage];
      if (neighbor < 0 || schedule_.stages[neighbor].rank == static_cast<int>(rank)) continue;
      const Action missing{.op = forward ? Op::kSendActivation : Op::kSendGradient,
                           .part = a.part,
                           .stage = neighbor,
                           .microbatch = a.microbatch};
      const int other = schedule_.stages[neighbor].rank;
      if (std::ranges::find(schedule_.ranks[other], missing) != schedule_.ranks[other].end()) continue;
      throw ScheduleError(fmt::format("{} waits for {}, which rank {} does not list: lower the schedule first",
                                      to_text(a), to_text(missing), other));
    }
  }

  const Schedule& schedule_;
  StageNeighbors neighbors_;
  Channels channels_;
  ActionIds ids_;
  JointReductions joint_;
  ReductionQueues reduction_queues_;
  StepKinds kinds_;
  int parts_;
  std::vector<RankState> ranks_;
  std::vector<StageState> stages_;
  std::vector<Unit> units_;
  std::vector<MovedUnit> moved_;                                 ///< [unit]; empty until activations move
  std::map<std::int32_t, WaitingReduction> waiting_reductions_;  ///< by action id
  std::array<Direction, 2> directions_;                          ///< activations, gradients
  std::vector<Register> channel_registers_;                      ///< [channel]
  std::vector<std::vector<WaitingSend>> lines_;                  ///< [channel] sends whose receive is not issued yet
  std::deque<int> runnable_;                                     ///< first in, first out
  std::vector<Register> free_registers_;  ///< last in, first out: few are in use, and those are in the cache
  Register join_register_ = kZeroRegister;
  Register send_register_ = kZeroRegister;
  std::vector<Register> joined_;  ///< inputs of the action at hand
  CompiledSchedule compiled_;
};

}  // namespace

CompiledSchedule compile(const Schedule& lowered, Sends sends) {
  return Compiler(lowered, sends).run();
}

}  // namespace plumb
