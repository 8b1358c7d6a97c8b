#include "tests/executor/transport/nccl/order/exchange_lists.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "executor/groups/message_pairs.h"
#include "schedules/dependencies/dependencies.h"
#include "tests/executor/transport/nccl/order/check_nccl_order.h"
#include "tests/executor/transport/nccl/order/cpu_step.h"
#include "tests/executor/transport/nccl/order/training_order.h"

namespace plumb::test {
namespace {

void add_calls(std::vector<NcclCall>& calls, const MoveTag& tag, int member, int members) {
  const std::int64_t bytes = 4 * tag.elements;
  const auto pair = [&](int distance, std::int64_t each) {
    calls.push_back({CollectiveKind::kSend, (member + distance) % members, each});
    calls.push_back({CollectiveKind::kReceive, (member - distance + members) % members, each});
  };
  switch (tag.op) {
    case CollectiveKind::kShift:
      return pair(1, bytes);
    case CollectiveKind::kAllToAll:
      for (int distance = 1; distance < members; ++distance) pair(distance, bytes / members);
      return;
    case CollectiveKind::kBroadcast:
      return calls.push_back({CollectiveKind::kBroadcast, tag.root, bytes});
    case CollectiveKind::kReduce:
      return calls.push_back({CollectiveKind::kReduce, tag.root, bytes});
    case CollectiveKind::kAllGather:
      return calls.push_back({CollectiveKind::kAllGather, NcclCall::kNone, bytes});
    case CollectiveKind::kReduceScatter:
      return calls.push_back({CollectiveKind::kReduceScatter, NcclCall::kNone, bytes});
    default:
      return calls.push_back({CollectiveKind::kAllReduce, NcclCall::kNone, bytes});
  }
}

/// A message is known by its channel and its number there.
using Message = std::tuple<std::string, std::vector<int>, int>;
using MessageGroup = std::set<Message>;

/// Groups of a rank's messages that go both ways, which is on two channels.
std::set<MessageGroup> message_groups(const NcclOrder& order, std::size_t rank) {
  std::map<std::int32_t, MessageGroup> groups;
  std::map<std::int32_t, int> calls;  // by communicator
  for (const OrderedCall& call : order.ranks[rank].calls) {
    if (!call.kind) continue;
    const CommunicatorRanks& of = order.communicators[static_cast<std::size_t>(call.communicator)];
    const int number = calls[call.communicator]++;
    if (call.group == OrderedCall::kNone || (of.name != "activations" && of.name != "gradients")) continue;
    groups[call.group].emplace(of.name, of.ranks, number);
  }
  std::set<MessageGroup> found;
  for (const auto& [number, members] : groups) found.insert(members);
  return found;
}

/// Returns message_pairs() of the schedule as `rank` sees them. There are none between meshes that differ.
std::set<MessageGroup> scheduled_groups(const TrainingPlan& plan, int rank) {
  const Schedule& schedule = plan.replay.schedule;
  const std::vector<MessagePair> pairs = message_pairs(schedule, plan.replay.grid);
  if (pairs.empty()) return {};
  const GridCoordinates own = coordinates_of(plan.replay.grid, rank);
  const std::vector<Action>& actions = schedule.ranks[static_cast<std::size_t>(own.pipeline)];
  const StageNeighbors neighbors = stage_neighbors(schedule);
  std::map<std::pair<std::string, std::vector<int>>, int> messages;  // by channel
  std::vector<Message> message_at(actions.size());
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (!is_send(actions[i].op) && !is_recv(actions[i].op)) continue;
    const bool is_activation = actions[i].op == Op::kSendActivation || actions[i].op == Op::kRecvActivation;
    const bool sends = is_send(actions[i].op);
    const int other = (is_activation == sends ? neighbors.successor
                                              : neighbors.predecessor)[static_cast<std::size_t>(actions[i].stage)];
    GridCoordinates place = own;
    place.pipeline = schedule.stages[static_cast<std::size_t>(other)].rank;
    const int peer = world_rank_of(plan.replay.grid, place);
    const std::string name = is_activation ? "activations" : "gradients";
    const std::vector<int> ranks = sends ? std::vector{rank, peer} : std::vector{peer, rank};
    message_at[i] = {name, ranks, messages[{name, ranks}]++};
  }
  std::set<MessageGroup> found;
  for (const MessagePair& pair : pairs)
    for (const NeighborPlace& end : pair.ends) {
      if (end.rank != own.pipeline) continue;
      const auto position = static_cast<std::size_t>(end.position);
      found.insert({message_at[position], message_at[position + 1]});
    }
  return found;
}

/// A device sends blocks of the most rows that the router can pick for an expert rank.
bool fits(std::int64_t bytes, std::int64_t cpu_bytes, bool is_bound) {
  return is_bound ? bytes >= cpu_bytes : bytes == cpu_bytes;
}

void check_lists(const std::vector<NcclCall>& own, const std::vector<NcclCall>& cpu, bool is_bound) {
  CHECK(own.size() == cpu.size());
  for (std::size_t i = 0; i < cpu.size() && i < own.size(); ++i) {
    CAPTURE(i);
    CHECK(collective_name(own[i].kind) == collective_name(cpu[i].kind));
    CHECK(own[i].peer == cpu[i].peer);
    CAPTURE(own[i].bytes);
    CAPTURE(cpu[i].bytes);
    CHECK(fits(own[i].bytes, cpu[i].bytes, is_bound));
  }
}

}  // namespace

ExchangeLists exchange_lists(const NcclOrder& order) {
  ExchangeLists lists;
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank)
    for (const OrderedCall& call : order.ranks[rank].calls) {
      if (!call.kind) continue;
      const CommunicatorRanks& communicator = order.communicators[static_cast<std::size_t>(call.communicator)];
      const auto member = std::ranges::find(communicator.ranks, static_cast<int>(rank)) - communicator.ranks.begin();
      std::vector<std::vector<NcclCall>>& members = lists[{communicator.name, communicator.ranks}];
      members.resize(communicator.ranks.size());
      members[static_cast<std::size_t>(member)].push_back({*call.kind, call.peer, call.bytes});
    }
  return lists;
}

ExchangeLists cpu_exchange_lists(const RunSpec& spec, const TrainingPlan& plan) {
  const CpuStep step = cpu_step(spec, plan);
  ExchangeLists lists;
  for (const auto& [channel, elements] : step.messages) {
    auto& of = lists[{channel.kind == MessageKind::kActivation ? "activations" : "gradients",
                      {channel.source, channel.destination}}];
    of.resize(2);
    for (const std::int64_t count : elements) {
      of[0].push_back({CollectiveKind::kSend, 1, 4 * count});
      of[1].push_back({CollectiveKind::kReceive, 0, 4 * count});
    }
  }
  for (const auto& [key, collectives] : step.collectives) {
    const auto& [group, member] = key;
    if (group.ranks.size() == 1) continue;
    std::vector<NcclCall> calls;
    for (auto it = collectives.begin(); it != collectives.end(); ++it) {
      const MoveTag& tag = it->second;
      // How all ranks meet between steps is none of the schedule's: they ask each other whether to end, then one says
      // the time.
      const auto next = std::next(it);
      const bool asks = next != collectives.end() && next->second.op == CollectiveKind::kBroadcast;
      if (group.name == "all ranks" && (tag.op != CollectiveKind::kAllReduce || asks)) continue;
      if (tag.elements != 0) add_calls(calls, tag, member, static_cast<int>(group.ranks.size()));
    }
    if (calls.empty()) continue;
    auto& of = lists[{group.name, group.ranks}];
    of.resize(group.ranks.size());
    of[static_cast<std::size_t>(member)] = std::move(calls);
  }
  return lists;
}

std::int64_t check_against_cpu(const RunSpec& given) {
  RunSpec spec = given;
  spec.steps = 1;
  const NcclOrder order = training_order(spec);
  for (const std::string& fault : check_nccl_order(order, {.channels = most_kernels_of_a_group(order)}))
    FAIL_CHECK(fault);
  const TrainingPlan plan = plan_training(spec);
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank)
    CHECK(message_groups(order, rank) == scheduled_groups(plan, static_cast<int>(rank)));
  const ExchangeLists own = exchange_lists(order), cpu = cpu_exchange_lists(spec, plan);
  CHECK(own.size() == cpu.size());
  std::int64_t calls = 0;
  for (const auto& [name, members] : cpu) {
    const std::string& communicator = name.first;
    CAPTURE(communicator);
    const auto found = own.find(name);
    if (found == own.end()) {
      FAIL_CHECK("a device does not exchange this");
      continue;
    }
    for (std::size_t member = 0; member < members.size(); ++member) {
      CAPTURE(member);
      check_lists(found->second[member], members[member], communicator == "expert group");
      calls += std::ssize(members[member]);
    }
  }
  return calls;
}

}  // namespace plumb::test
