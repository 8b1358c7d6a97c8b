// The collectives that the planner prices in a tensor group are held against the bytes that the executor's ranks
// exchange there.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "planner/price/layer/layer_price.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

constexpr int kMicrobatches = 2, kRanks = 2;

using Bytes = std::array<std::int64_t, kPricedCollectiveCount>;

/// Returns the bytes of one rank in a step that the planner prices.
Bytes priced_bytes(const std::vector<Layer>& layers, const LayerWork& work) {
  const CollectivePrices links{.node = {.bytes_per_second = 1e9}};
  const KernelPrices kernels{.device = {}, .element_bytes = 4, .gradient_bytes = 4};
  const InnerGroups groups{.tensor = {.ranks = kRanks, .ranks_per_node = kRanks}};
  Bytes bytes{};
  for (const Layer& layer : layers) {
    const LayerPrice price = layer_price(kernels, links, groups, layer, work, nullptr);
    for (const PassPrice* pass : {&price.forward, &price.input_grad, &price.weight_grad})
      for (std::size_t kind = 0; kind < bytes.size(); ++kind)
        bytes[kind] += kMicrobatches * pass->collective_bytes[static_cast<std::size_t>(Group::kTensor)][kind];
  }
  return bytes;
}

Bytes exchanged_bytes(const std::array<std::int64_t, kCollectiveKindCount>& by_kind) {
  Bytes bytes{};
  std::copy_n(by_kind.begin(), bytes.size(), bytes.begin());
  return bytes;
}

}  // namespace

TEST_CASE("a tensor group exchanges the bytes that are priced, by kind of collective, to the byte") {
  std::vector<Layer> sharing_heads = llama_model();
  for (std::size_t i = 1; i + 1 < sharing_heads.size(); ++i) std::get<TransformerLayer>(sharing_heads[i]).kv_heads = 1;
  for (const std::vector<Layer>& model :
       {llama_model(), gpt_model(), sharing_heads, mixtral_model(), shared_expert_model()})
    for (const bool sequence_parallel : {false, true})
      for (const char* schedule : {"1f1b", "zb-h1"}) {
        CAPTURE(sequence_parallel);
        RunSpec spec = spec_of(model, make_schedule(schedule, {.ranks = 2, .microbatches = kMicrobatches}));
        spec.grid.tensor = kRanks;
        spec.sequence_parallel = sequence_parallel;
        spec.sequence = 8;
        const RunResult result = run(spec);
        const LayerWork work{.microbatch = spec.microbatch,
                             .sequence = spec.sequence,
                             .tensor_parallel = kRanks,
                             .sequence_parallel = sequence_parallel,
                             .experts = {.tensor = kRanks}};
        for (std::size_t stage = 0; stage < 2; ++stage)
          for (std::size_t rank = 0; rank < kRanks; ++rank)
            CHECK(exchanged_bytes(result.tensor_group_bytes[kRanks * stage + rank]) ==
                  priced_bytes(spec.stage_layers[stage], work));
      }
}

}  // namespace plumb::test
