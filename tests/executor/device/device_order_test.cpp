// What a rank on a device of its own exchanges, against executor/nccl's list: call by call on each communicator.

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "executor/device/run_device.h"
#include "executor/nccl/nccl_order.h"
#include "tests/executor/device/host_run.h"
#include "tests/executor/small_model.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Call = std::tuple<NcclKind, std::int32_t, std::int64_t>;  // kind, peer, bytes
using Lists = std::map<std::pair<std::string, std::vector<int>>, std::vector<Call>>;

/// Notes what is exchanged, and exchanges nothing. The list counts tensor ranks' partial sums in fp32, in which the cpu
/// backend has them; a device has them as activations are stored, so that in 16 bits elements are compared, not bytes.
class NotingMachine : public HostMachine {
 public:
  explicit NotingMachine(std::optional<HalfFormat> half) : HostMachine(half) {}
  void join(const DeviceGroups& groups) override { groups_ = groups; }
  void exchange(const DeviceExchange& exchange) override {
    const NcclCommunicator& of = groups_.communicators.at(static_cast<std::size_t>(exchange.communicator));
    CHECK(of.ranks.at(static_cast<std::size_t>(exchange.member)) == groups_.rank);
    auto& list = lists_[{of.name, of.ranks}];
    if (exchange.pairs == DevicePairs::kNone) {
      list.emplace_back(exchange.kind, exchange.peer, 4 * exchange.elements);
      return;
    }
    const auto members = static_cast<std::int32_t>(of.ranks.size());
    const bool is_shift = exchange.pairs == DevicePairs::kShift;
    const std::int64_t bytes = 4 * exchange.elements / (is_shift ? 1 : members);
    for (std::int32_t distance = 1; distance < (is_shift ? 2 : members); ++distance) {
      list.emplace_back(NcclKind::kSend, (exchange.member + distance) % members, bytes);
      list.emplace_back(NcclKind::kReceive, (exchange.member - distance + members) % members, bytes);
    }
  }
  const Lists& lists() const { return lists_; }

 private:
  DeviceGroups groups_;
  Lists lists_;
};

Lists planned(const NcclOrder& order, std::size_t rank) {
  Lists lists;
  for (const NcclCall& call : order.ranks[rank].calls) {
    if (call.kind == NcclKind::kCompute) continue;
    const NcclCommunicator& of = order.communicators[static_cast<std::size_t>(call.communicator)];
    lists[{of.name, of.ranks}].emplace_back(call.kind, call.peer, call.bytes);
  }
  return lists;
}

std::vector<Layer> model_of(bool is_tied, bool is_half) {
  if (is_half) return is_tied ? tied_llama_model() : llama_model();
  return is_tied ? gpt_model() : untied_gpt_model();
}

/// With twice as many heads of half the size.
TransformerLayer four_heads(TransformerLayer block) {
  block.heads *= 2;
  block.kv_heads *= 2;
  block.head_size /= 2;
  return block;
}

/// Calls that are compared, of all ranks.
std::int64_t check_lists(const RunSpec& spec) {
  std::int64_t calls = 0;
  const NcclOrder order = plan_nccl_order(spec, plan_training(spec));
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
    NotingMachine machine(spec.half);
    run_device_rank(spec, static_cast<int>(rank), machine);
    const Lists expected = planned(order, rank);
    for (const auto& [of, list] : expected) {
      const std::string group = of.first;
      CAPTURE(group);
      const auto own = machine.lists().find(of);
      REQUIRE(own != machine.lists().end());
      CHECK(own->second.size() == list.size());
      for (std::size_t i = 0; i < list.size() && i < own->second.size(); ++i) {
        CAPTURE(i);
        CHECK(nccl_kind_name(std::get<0>(own->second[i])) == nccl_kind_name(std::get<0>(list[i])));
        CHECK(std::get<1>(own->second[i]) == std::get<1>(list[i]));
        CHECK(std::get<2>(own->second[i]) == std::get<2>(list[i]));
      }
      calls += std::ssize(list);
    }
    CHECK(machine.lists().size() == expected.size());
  }
  return calls;
}

RunSpec laid_out(const std::vector<Layer>& model, const std::string& name, int replicas, int tensor, int zero) {
  RunSpec spec = spec_of_lowered(
      model,
      lower(make_schedule(name, {.ranks = 2, .microbatches = 4}), {.data = {.enabled = replicas > 1, .zero = zero}}),
      replicas);
  spec.grid.tensor = tensor;
  spec.zero = zero;
  spec.steps = 1;
  return spec;
}

}  // namespace

TEST_CASE("what a rank on a device of its own exchanges is NCCL's planned list, call by call") {
  std::int64_t calls = 0;
  for (const bool is_tied : {false, true})
    for (const auto& [name, replicas, tensor, zero] :
         std::vector<std::tuple<std::string, int, int, int>>{{"1f1b", 2, 1, 0},
                                                             {"interleaved", 1, 2, 0},
                                                             {"zb-h1", 2, 2, 1},
                                                             {"zb-v", 3, 1, 2},
                                                             {"gpipe", 2, 1, 3},
                                                             {"1f1b", 2, 2, 3}})
      for (const bool is_half : {false, true}) {
        CAPTURE(name);
        CAPTURE(zero);
        RunSpec spec = laid_out(model_of(is_tied, is_half), name, replicas, tensor, zero);
        if (is_half) spec.half = is_tied ? HalfFormat::kFp16 : HalfFormat::kBf16;
        if (is_tied && replicas > 1) spec.clip_norm = 1;
        calls += check_lists(spec);
      }
  CHECK(calls > 1000);
}

TEST_CASE("between meshes of different shape too: pieces of messages, what completes them, and tied tables") {
  for (const Resharding kind : {Resharding::kDirect, Resharding::kAllGather, Resharding::kBroadcast})
    for (const bool is_tied : {false, true}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(is_tied);
      RunSpec spec = laid_out(model_of(is_tied, false), is_tied ? "1f1b" : "zb-h1", 1, 1, 1);
      spec.schedule =
          lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = 1}});
      spec.meshes = is_tied ? std::vector<StageMesh>{{.data = 1, .tensor = 2}, {.data = 2, .tensor = 1}}
                            : std::vector<StageMesh>{{.data = 1, .tensor = 1}, {.data = 2, .tensor = 2}};
      spec.resharding = kind;
      spec.microbatch = 4;
      CHECK(check_lists(spec) > 40);
    }
}

TEST_CASE("copies of a stage in one schedule too, of which several ranks of a pipeline exchange") {
  for (const std::string name : {"chimera", "dualpipe"})
    for (const int zero : {0, 1, 2, 3})
      for (const bool is_tied : {false, true}) {
        CAPTURE(name);
        CAPTURE(zero);
        RunSpec spec = laid_out(model_of(is_tied, false), name, 1, 1, zero);
        spec.schedule =
            lower(make_schedule(name, {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = zero}});
        if (is_tied) spec.clip_norm = 1;
        CHECK(check_lists(spec) > 15);
      }
}

TEST_CASE("layer by layer too: weights of the next layer ahead, gradients behind the layer's own") {
  for (const int zero : {2, 3})
    for (const auto& [name, rebuild] : std::vector<std::pair<std::string, Rebuild>>{{"1f1b", Rebuild::kNothing},
                                                                                    {"zb-h1", Rebuild::kNothing},
                                                                                    {"interleaved", Rebuild::kStage},
                                                                                    {"1f1b", Rebuild::kLayers},
                                                                                    {"gpipe", Rebuild::kSelective}})
      for (const bool is_half : {false, true}) {
        CAPTURE(name);
        CAPTURE(zero);
        RunSpec spec = laid_out(model_of(is_half, is_half), name, 2, name == "gpipe" ? 2 : 1, zero);
        spec.layerwise = true;
        spec.rebuild = rebuild;
        spec.rebuild_which = RebuildWhich::kAll;
        if (is_half) spec.half = HalfFormat::kBf16;
        if (zero == 2) spec.shard_by = ShardBy::kLayer;
        CHECK(check_lists(spec) > 80);
      }
}

TEST_CASE("with sequence parallelism too, and where tensor ranks have the same kv heads") {
  std::vector<Layer> one_kv_head = llama_model();
  for (Layer& layer : one_kv_head)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->kv_heads = 1;
  for (const bool divides_rows : {false, true})
    for (const std::vector<Layer>& model : {untied_gpt_model(), one_kv_head})
      for (const auto& [name, replicas, zero] :
           std::vector<std::tuple<std::string, int, int>>{{"1f1b", 1, 0}, {"zb-h1", 2, 3}, {"interleaved", 2, 1}}) {
        CAPTURE(name);
        CAPTURE(divides_rows);
        RunSpec spec = laid_out(model, name, replicas, 2, zero);
        spec.sequence_parallel = divides_rows;
        CHECK(check_lists(spec) > 100);
      }
}

TEST_CASE("the all-to-alls and the rings of context groups too") {
  for (const ContextAttention attention : {ContextAttention::kUlysses, ContextAttention::kRing})
    for (const auto& [name, replicas, tensor, context, zero] : std::vector<std::tuple<std::string, int, int, int, int>>{
             {"1f1b", 1, 1, 2, 0}, {"zb-h1", 2, 1, 2, 3}, {"interleaved", 1, 2, 2, 1}, {"gpipe", 1, 1, 4, 2}}) {
      CAPTURE(name);
      CAPTURE(static_cast<int>(attention));
      std::vector<Layer> model = model_of(true, false);
      for (Layer& layer : model)
        if (auto* block = std::get_if<TransformerLayer>(&layer)) *block = four_heads(*block);
      RunSpec spec = laid_out(model, name, replicas * context, tensor, zero);
      spec.grid.data = replicas;
      spec.grid.context = context;
      spec.context_attention = attention;
      spec.sequence_parallel = tensor > 1;
      spec.sequence = 16;
      CHECK(check_lists(spec) > 100);
    }
}
