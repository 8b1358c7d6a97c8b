// The list of NCCL calls against what the cpu backend's ranks send each other: every message, every collective, with
// its size, in its order.

#include <doctest/doctest.h>

#include <string>
#include <tuple>

#include "executor/nccl/check_nccl_order.h"
#include "executor/nccl/nccl_order.h"
#include "tests/executor/nccl/recorded_run.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

using ListedCall =
    std::tuple<NcclKind, std::int32_t, std::int64_t>;  // kind, peer, bytes; -1: the router's picks decide

/// [communicator's name and ranks][member] the calls on it.
using Lists = std::map<std::pair<std::string, std::vector<int>>, std::vector<std::vector<ListedCall>>>;

Lists planned_lists(const NcclOrder& order) {
  Lists lists;
  for (const NcclCommunicator& communicator : order.communicators)
    lists[{communicator.name, communicator.ranks}].resize(communicator.ranks.size());
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank)
    for (const NcclCall& call : order.ranks[rank].calls) {
      if (call.kind == NcclKind::kCompute) continue;
      const NcclCommunicator& communicator = order.communicators[static_cast<std::size_t>(call.communicator)];
      const auto member = std::ranges::find(communicator.ranks, static_cast<int>(rank)) - communicator.ranks.begin();
      lists[{communicator.name, communicator.ranks}][static_cast<std::size_t>(member)].emplace_back(
          call.kind, call.peer, call.is_bound ? -1 : call.bytes);
    }
  return lists;
}

void add_calls(std::vector<ListedCall>& calls, const MoveTag& tag, int member, int members) {
  const std::int64_t bytes = 4 * tag.elements;
  const auto pair = [&](int distance, std::int64_t each) {
    calls.emplace_back(NcclKind::kSend, (member + distance) % members, each);
    calls.emplace_back(NcclKind::kReceive, (member - distance + members) % members, each);
  };
  switch (tag.op) {
    case CollectiveKind::kShift:
      return pair(1, bytes);
    case CollectiveKind::kAllToAll:
      for (int distance = 1; distance < members; ++distance) pair(distance, bytes / members);
      return;
    case CollectiveKind::kBroadcast:
      calls.emplace_back(NcclKind::kBroadcast, tag.root, bytes);
      return;
    case CollectiveKind::kReduce:
      calls.emplace_back(NcclKind::kReduce, tag.root, bytes);
      return;
    case CollectiveKind::kAllGather:
      calls.emplace_back(NcclKind::kAllGather, -1, bytes);
      return;
    case CollectiveKind::kReduceScatter:
      calls.emplace_back(NcclKind::kReduceScatter, -1, bytes);
      return;
    default:
      calls.emplace_back(NcclKind::kAllReduce, -1, bytes);
  }
}

Lists recorded_lists(const Recorded& recorded) {
  Lists lists;
  for (const auto& [channel, elements] : recorded.messages) {
    auto& of = lists[{channel.kind == MessageKind::kActivation ? "activations" : "gradients",
                      {channel.source, channel.destination}}];
    of.resize(2);
    for (const std::int64_t count : elements) {
      of[0].emplace_back(NcclKind::kSend, 1, 4 * count);
      of[1].emplace_back(NcclKind::kReceive, 0, 4 * count);
    }
  }
  for (const auto& [key, collectives] : recorded.collectives) {
    const auto& [group, member] = key;
    if (group.ranks.size() == 1) continue;
    std::vector<ListedCall> calls;
    for (auto it = collectives.begin(); it != collectives.end(); ++it) {
      const auto& tag = it->second;
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

/// Sizes that the router's picks decide are not compared.
bool same(const std::vector<ListedCall>& planned, const std::vector<ListedCall>& recorded) {
  return std::ranges::equal(planned, recorded, [](const ListedCall& a, const ListedCall& b) {
    const bool sizes_fit = std::get<2>(a) == -1 || std::get<2>(a) == std::get<2>(b);
    return std::get<0>(a) == std::get<0>(b) && std::get<1>(a) == std::get<1>(b) && sizes_fit;
  });
}

/// Holds the planned calls of a run against those of its step on the CPU. Returns how many there are.
std::int64_t check_against_cpu(const RunSpec& spec) {
  const TrainingPlan plan = plan_training(spec);
  const NcclOrder order = plan_nccl_order(spec, plan);
  for (const std::string& finding : check_nccl_order(order, {}, &plan.replay.schedule, &plan.replay.grid))
    FAIL_CHECK(finding);
  Lists planned = planned_lists(order);
  std::erase_if(planned, [](const auto& entry) { return entry.second.front().empty() && entry.second.back().empty(); });
  const Lists recorded = recorded_lists(recorded_step(spec, plan));
  CHECK(planned.size() == recorded.size());
  for (const auto& [name, members] : recorded) {
    const std::string& communicator = name.first;
    CAPTURE(communicator);
    const auto found = planned.find(name);
    if (found == planned.end()) {
      FAIL_CHECK("not planned");
      continue;
    }
    for (std::size_t member = 0; member < members.size(); ++member) {
      CAPTURE(member);
      CHECK(found->second[member].size() == members[member].size());
      CHECK(same(found->second[member], members[member]));
    }
  }
  return nccl_call_count(order);
}

/// Four heads, so that tensor and context ranks can share them; every other block has experts.
std::vector<Layer> mixed_model(int blocks) {
  std::vector<Layer> layers = gpt_model(blocks);
  for (int block = 2; block <= blocks; block += 2) layers[static_cast<std::size_t>(block)] = shared_expert_block();
  for (Layer& layer : layers)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->heads = block->kv_heads = 4, block->head_size = 4;
  return layers;
}

}  // namespace

TEST_CASE("the planned NCCL calls of every schedule are the messages of the cpu backend") {
  for (const CatalogueEntry& entry : catalogue()) {
    CAPTURE(std::string(entry.name));
    const ScheduleParameters shape{.ranks = 2,
                                   .microbatches = 4,
                                   .chunks = entry.takes_chunks ? 2 : entry.chunks,
                                   .slices = entry.takes_slices ? 2 : 1};
    // An asynchronous schedule cannot share a table between its ends.
    const bool is_asynchronous = entry.name.starts_with("pipedream");
    const std::vector<Layer> model = is_asynchronous ? llama_model(6) : mixed_model(6);
    CHECK(check_against_cpu(spec_over(model, std::string(entry.name), shape, {})) >= 4);
  }
}

TEST_CASE("tensor, sequence, context and expert groups exchange what the cpu backend's do") {
  for (const bool sequence_parallel : {false, true})
    for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses})
      for (const ProcessGrid& grid : {ProcessGrid{.tensor = 2}, ProcessGrid{.context = 2, .expert = 2},
                                      ProcessGrid{.tensor = 2, .context = 2}, ProcessGrid{.expert = 2, .data = 2}}) {
        CAPTURE(grid.tensor);
        CAPTURE(grid.context);
        RunSpec spec = spec_over(mixed_model(4), "zb-h1", {.ranks = 2, .microbatches = 2}, grid);
        spec.sequence_parallel = sequence_parallel;
        spec.context_attention = attention;
        check_against_cpu(spec);
      }
  for (const char* schedule : {"seq1f1b", "gpipe"}) {
    RunSpec spec = spec_over(llama_model(), schedule, {.ranks = 2, .microbatches = 2}, {.tensor = 2, .context = 2});
    if (std::string(schedule) == "seq1f1b")
      spec = spec_over(llama_model(), schedule, {.ranks = 2, .microbatches = 2, .slices = 2}, {.context = 2});
    check_against_cpu(spec);
  }
  RunSpec three = spec_over(mixtral_model(), "1f1b", {.ranks = 1, .microbatches = 1}, {.context = 4, .expert = 4});
  check_against_cpu(three);
}

TEST_CASE("replicas reduce and gather what the cpu backend's do, for every ZeRO stage") {
  for (const int zero : {0, 1, 2, 3})
    for (const ShardBy by : {ShardBy::kElement, ShardBy::kLayer})
      for (const bool layerwise : {false, true}) {
        CAPTURE(zero);
        CAPTURE(layerwise);
        RunSpec spec =
            spec_over(mixed_model(4), "1f1b", {.ranks = 2, .microbatches = 3}, {.expert = 2, .data = 2}, zero);
        spec.shard_by = by;
        spec.layerwise = layerwise;
        if (zero > 0) spec.clip_norm = 1;
        if (layerwise) spec.rebuild = zero == 3 ? Rebuild::kLayers : Rebuild::kSelective;
        check_against_cpu(spec);
      }
  RunSpec half = spec_over(llama_model(), "interleaved", {.ranks = 2, .microbatches = 4, .chunks = 2}, {.data = 2}, 3);
  half.half = HalfFormat::kFp16;
  half.layerwise = true;
  half.rebuild = Rebuild::kStage;
  check_against_cpu(half);
  LoweringOptions buckets{.data = {.enabled = true, .zero = 0, .sharding = {}, .buckets = {2, 2}}};
  RunSpec bucketed =
      spec_of_lowered(gpt_model(), lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 3}), buckets), 2);
  CHECK(check_against_cpu(bucketed) > 0);
  check_against_cpu(spec_over(gpt_model(), "chimera", {.ranks = 2, .microbatches = 4}, {.data = 2}));
}

TEST_CASE("meshes of different shape hand over the pieces of the cpu backend") {
  constexpr StageMesh tensor2{.tensor = 2}, data2{.data = 2}, both{.data = 2, .tensor = 2};
  for (const Resharding kind : {Resharding::kDirect, Resharding::kAllGather, Resharding::kBroadcast})
    for (const std::vector<StageMesh>& meshes : {std::vector{tensor2, data2}, {data2, both}}) {
      LoweringOptions options{.data = {.enabled = true}};
      RunSpec spec =
          spec_of_lowered(gpt_model(), lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), options), 1);
      spec.meshes = meshes;
      spec.microbatch = 4;
      spec.sequence = 8;
      spec.resharding = kind;
      check_against_cpu(spec);
    }
}

}  // namespace plumb::test
