#include "simulator/network/engine/event_program.h"

#include <map>
#include <utility>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/weight_messages.h"
#include "simulator/engine/action_costs.h"

namespace plumb { inline namespace simulator {
namespace {

EventKind kind_of(Op op) {
  if (is_compute(op)) return EventKind::kCompute;
  if (is_send(op) || sends_weights(op)) return EventKind::kMessage;
  return is_collective(op) ? EventKind::kCollective : EventKind::kBeside;
}

/// Makes a sum over copies one collective: its first member's, which lasts as long as the longest of them.
void follow_first_copies(EventProgram& program) {
  for (const std::vector<std::int32_t>& members : program.joint.members) {
    const std::int32_t first = members.front();
    for (const std::int32_t member : members) {
      if (member == first) continue;
      if (program.alone[member] > program.alone[first]) {
        program.alone[first] = program.alone[member];
        program.rate[first] = program.rate[member];
      }
      program.lead[member] = first;
      program.kind[member] = EventKind::kFollower;
    }
  }
}

/// Sorts the dependencies by the moment that they wait for (a counting sort).
void link_successors(EventProgram& program) {
  program.waits.assign(program.actions, 0);
  program.first_successor.assign(kWaits * static_cast<std::size_t>(program.actions) + 2, 0);
  const auto slot = [](const Dependency& d) {
    return kWaits * static_cast<std::size_t>(d.from) + static_cast<std::size_t>(d.wait);
  };
  for (const Dependency& d : program.dependencies) {
    ++program.waits[d.to];
    ++program.first_successor[slot(d) + 2];
  }
  for (std::size_t i = 1; i < program.first_successor.size(); ++i)
    program.first_successor[i] += program.first_successor[i - 1];
  program.successors.resize(program.dependencies.size());
  for (const Dependency& d : program.dependencies) program.successors[program.first_successor[slot(d) + 1]++] = d.to;
  program.first_successor.pop_back();
}

/// Sets when the buckets are complete whose REDUCE_GRADs start inside their hosts. Returns the offsets by host.
std::map<std::int32_t, std::vector<SimTime>> set_offsets(EventProgram& program, const Schedule& lowered,
                                                         const ActionCosts& costs) {
  const ActionIds ids = action_ids(lowered);
  const auto action_of = [&](std::int32_t id) -> const Action& {
    const ActionPlace place = place_of(ids, id);
    return lowered.ranks[place.rank][place.position];
  };
  std::map<std::int32_t, std::vector<SimTime>> inside;
  for (const Dependency& d : program.dependencies) {
    if (d.wait != Wait::kInside) continue;
    program.inside.resize(program.actions, SimTime{0});
    program.inside[d.to] = bucket_offset(costs, action_of(d.from), action_of(d.to));
    inside[d.from].push_back(program.inside[d.to]);
  }
  return inside;
}

}  // namespace

EventProgram event_program(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network, Sends sends) {
  const ActionCosts converted = convert_costs(lowered, costs);
  const auto actions = static_cast<std::size_t>(action_count(lowered));
  EventProgram program{
      .actions = static_cast<std::int32_t>(actions), .table = ActionTable(lowered), .joint = joint_reductions(lowered)};
  program.dependencies = dependencies(lowered, program.table, sends);
  program.kind.reserve(actions);
  program.lead.reserve(actions);
  program.rank.reserve(actions);
  program.alone.reserve(actions);
  program.latency.reserve(actions);
  program.rate.reserve(actions);
  program.arrival.reserve(actions);

  const WeightMessages weights = weight_messages(lowered);
  std::map<std::pair<Op, int>, const CollectiveFlow*> flows;
  for (const CollectiveFlow& flow : network.collectives) flows.emplace(std::pair(flow.op, flow.stage), &flow);
  std::vector<double> activation_rates;
  std::vector<double> gradient_rates;
  for (int stage = 0; stage < static_cast<int>(lowered.stages.size()); ++stage) {
    activation_rates.push_back(message_rate(lowered, costs, stage, false));
    gradient_rates.push_back(message_rate(lowered, costs, stage, true));
  }
  for (std::size_t r = 0; r < lowered.ranks.size(); ++r) {
    bool follows = false;
    const Action* before = nullptr;
    for (const Action& action : lowered.ranks[r]) {
      const auto id = static_cast<std::int32_t>(program.kind.size());
      program.rank.push_back(static_cast<std::int32_t>(r));
      program.lead.push_back(follows ? id - 1 : id);
      EventKind kind = kind_of(action.op);
      SimTime alone{0};
      SimTime latency{0};
      double rate = 0;
      std::int32_t arrival = ActionTable::kNone;
      if (sends_weights(action.op)) {
        alone = duration_of(converted, action);
        latency = weight_latency(converted, action);
        arrival = weights.partner[id];
      } else if (kind == EventKind::kMessage) {
        const TransferCost& cost = transfer_of(converted, action);
        const bool forward = action.op == Op::kSendActivation;
        alone = cost.occupied;
        latency = cost.latency;
        rate = (forward ? activation_rates : gradient_rates)[action.stage];
        arrival = program.table.find(forward ? Op::kRecvActivation : Op::kRecvGradient, cost.destination_stage,
                                     action.microbatch, action.part);
      } else if (!is_recv(action.op)) {
        alone = duration_of(converted, action);
        if (const auto flow = flows.find({action.op, action.stage}); flow != flows.end())
          rate = collective_rate(*flow->second, costs, action);
        if (is_move(action.op)) rate = move_rate(costs, action);
      }
      if (follows) {
        program.alone.back() = pair_duration(converted, *before, action);
        kind = EventKind::kFollower;
      }
      program.kind.push_back(kind);
      program.alone.push_back(alone);
      program.latency.push_back(latency);
      program.rate.push_back(rate);
      program.arrival.push_back(arrival);
      follows = action.overlaps_next;
      before = &action;
    }
  }
  follow_first_copies(program);
  const auto inside = set_offsets(program, lowered, converted);
  program.inner = inner_classes(network);
  program.stretches = stretches_of(lowered, costs, network, program.inner, inside);
  link_successors(program);
  return program;
}

}}  // namespace plumb::simulator
