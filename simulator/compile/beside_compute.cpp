#include "simulator/compile/beside_compute.h"

#include <utility>

#include "schedules/dependencies/inner_reductions.h"

namespace plumb { inline namespace simulator {

BesideCompute::BesideCompute(const Schedule& schedule, const ActionIds& ids, const Units& units, OwnInputs& own,
                             StepWriter& writer, Turns& turns)
    : schedule_(schedule),
      ids_(ids),
      units_(units),
      own_(own),
      writer_(writer),
      turns_(turns),
      copies_(has_copies(schedule)),
      joint_(joint_reductions(schedule)),
      queues_(schedule, ids, joint_),
      ranks_(schedule.ranks.size()),
      stages_(schedule.stages.size()) {}

const Register* BesideCompute::missing_reduction(const Action& compute) const {
  const StageState& stage = stages_[compute.stage];
  return compute.op == Op::kOptimizerStep && stage.reductions_under_way > 0 ? &stage.reduction : nullptr;
}

void BesideCompute::take_inputs(const Action& compute, std::vector<Register>& inputs) {
  if (!moved_.empty() && has_microbatch(compute.op) && compute.op != Op::kForward) {
    for (Register& back : moved_[units_.of(compute)].back) {
      if (back == kZeroRegister) continue;
      inputs.push_back(back);
      writer_.give_back(std::exchange(back, kZeroRegister));
    }
  }
  StageState& stage = stages_[compute.stage];
  if (compute.op == Op::kOptimizerStep && std::exchange(stage.must_reduce, false)) inputs.push_back(stage.reduction);
  if (std::exchange(stage.must_gather, false)) inputs.push_back(stage.parameters);
}

void BesideCompute::issue(int rank, const Action& action, std::int32_t id) {
  RankState& state = ranks_[rank];
  StageState& stage = stages_[action.stage];
  switch (action.op) {
    case Op::kUnshard:
      stage.parameters = writer_.held(stage.parameters);
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

/// Takes a channel of the rank from the moment at which the action is issued and the channel is free.
void BesideCompute::collective(int rank, const Action& action, std::int32_t id, Register& channel, Register end,
                               Reason reason) {
  channel = writer_.held(channel);
  const std::uint32_t kind = writer_.kinds().beside(action, [&] {
    return StepKind{
        .rank = rank, .from = rank_register(rank), .to = channel, .channel = channel, .output_reason = reason};
  });
  writer_.add({.kind = kind, .input = channel, .output = end}, id);
}

/// Adds a RESHARD: nobody waits for it.
void BesideCompute::drop(int rank, const Action& action, std::int32_t id) {
  Register& horizon = ranks_[rank].horizon;
  horizon = writer_.held(horizon);
  const std::uint32_t kind = writer_.kinds().beside(
      action, [&] { return StepKind{.rank = rank, .from = rank_register(rank), .channel = horizon}; });
  writer_.add({.kind = kind}, id);
}

/// Adds an OFFLOAD, RELOAD, EVICT or LOAD: activations come back when they have left.
void BesideCompute::move(int rank, const Action& action, std::int32_t id) {
  own_.run(&action, 1);
  if (moved_.empty()) moved_.resize(units_.count());
  MovedUnit& unit = moved_[units_.of(action)];
  const std::size_t way = action.op == Op::kEvict || action.op == Op::kLoad ? 1 : 0;
  Register& channel = ranks_[rank].moves[static_cast<std::size_t>(action.op) - static_cast<std::size_t>(Op::kOffload)];
  channel = writer_.held(channel);
  std::vector<Register> inputs;
  if (Register& gone = unit.gone[way]; brings_back(action.op) && gone != kZeroRegister) {
    inputs.push_back(gone);
    writer_.give_back(std::exchange(gone, kZeroRegister));
  }
  inputs.push_back(channel);
  const Register input = writer_.join(inputs);
  const std::uint32_t kind = writer_.kinds().beside(action, [&] {
    return StepKind{
        .rank = rank, .from = rank_register(rank), .to = channel, .channel = channel, .output_reason = Reason::kMoved};
  });
  Register& end = (brings_back(action.op) ? unit.back : unit.gone)[way];
  if (end == kZeroRegister) end = writer_.take_register();
  writer_.add({.kind = kind, .input = input, .output = end}, id);
}

bool BesideCompute::has_host(int rank, std::int32_t id) {
  std::vector<std::int64_t>& hosts = ranks_[rank].hosts;
  if (hosts.empty()) hosts = hosts_of_reductions(schedule_.ranks[rank], copies_);
  return hosts[id - ids_.first_id[rank]] >= 0;
}

/// The reductions start as the host does, last up to their bucket's offset, and then depart onto the channel.
void BesideCompute::start_inside(int rank, const Action& host, std::int32_t host_id, Register input) {
  RankState& state = ranks_[rank];
  for (const std::int32_t id : state.inner) {
    const Action& reduction = schedule_.ranks[rank][id - ids_.first_id[rank]];
    state.reductions = writer_.held(state.reductions);
    const std::uint32_t kind = writer_.kinds().inside(reduction, host, [&] {
      return StepKind{
          .rank = rank, .from = rank_register(rank), .channel = state.reductions, .output_reason = Reason::kReduction};
    });
    writer_.add({.kind = kind, .input = input, .output = stages_[reduction.stage].reduction}, id, host_id);
  }
  state.inner.clear();
}

/// Adds a REDUCE_GRAD: inside its host, by itself, or together with those of its stage's copies.
void BesideCompute::reduce(int rank, const Action& action, std::int32_t id) {
  StageState& stage = stages_[action.stage];
  stage.reduction = writer_.held(stage.reduction);
  stage.must_reduce = true;
  if (has_host(rank, id)) {
    ranks_[rank].inner.push_back(id);
    return;
  }
  if (joint_.collective_of.empty())
    return collective(rank, action, id, ranks_[rank].reductions, stage.reduction, Reason::kReduction);

  const Register issued = writer_.take_register();
  writer_.add({.kind = writer_.kinds().copy(rank_register(rank), kUnreadRegister), .output = issued});
  waiting_reductions_[id] = {.action = action, .issued = issued};
  ++stage.reductions_under_way;
  for (const std::int32_t collective : queues_.issue(id)) reduce_together(joint_.members[collective]);
}

/// Starts a collective of copies, all of whose members are issued and first on their channels: they start and end
/// together. Each names its own rank as the cause where it can, otherwise the action that the last of the others waited
/// for.
void BesideCompute::reduce_together(const std::vector<std::int32_t>& members) {
  const Register latest = writer_.take_register();
  std::vector<Action> actions;
  for (const std::int32_t id : members) {
    const WaitingReduction& waiting = waiting_reductions_.at(id);
    StageState& stage = stages_[waiting.action.stage];
    Register& channel = ranks_[schedule_.stages[waiting.action.stage].rank].reductions;
    channel = writer_.held(channel);
    stage.joint = writer_.held(stage.joint);
    writer_.add({.kind = writer_.kinds().copy(kZeroRegister, stage.joint), .input = waiting.issued});
    writer_.add({.kind = writer_.kinds().copy(stage.joint, stage.joint), .input = channel});
    actions.push_back(waiting.action);
  }
  join_copies(actions, latest);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int rank = schedule_.stages[actions[i].stage].rank;
    StageState& stage = stages_[actions[i].stage];
    const std::uint32_t kind = writer_.kinds().joint(actions[i], actions, [&] {
      return StepKind{.rank = rank,
                      .from = stage.joint,
                      .to = ranks_[rank].reductions,
                      .channel = ranks_[rank].reductions,
                      .output_reason = Reason::kReduction};
    });
    writer_.add({.kind = kind, .input = latest, .output = stage.reduction}, members[i]);
    if (--stage.reductions_under_way == 0) turns_.arrived(rank, &stage.reduction);
    writer_.give_back(waiting_reductions_.at(members[i]).issued);
    waiting_reductions_.erase(members[i]);
  }
  writer_.give_back(latest);
}

/// Writes to `latest` the last moment at which one of the copies is ready.
void BesideCompute::join_copies(const std::vector<Action>& copies, Register latest) {
  latest_copy_ = writer_.held(latest_copy_);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const Register from = i == 0 ? kZeroRegister : latest_copy_;
    writer_.add({.kind = writer_.kinds().copy(from, latest_copy_, Reason::kReduction),
                 .input = stages_[copies[i].stage].joint,
                 .output = latest});
  }
}

}}  // namespace plumb::simulator
