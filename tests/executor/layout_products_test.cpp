// Products of pipeline schedules, replicas, tensor, sequence, context and expert parallelism and recomputation against
// one rank, for a model with dense blocks, experts that are full, and dropout. Every pair of values is run; with
// PLUMB_ALL_LAYOUTS set in the environment every product.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "executor/run.h"
#include "small_model.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct Pipeline {
  const char* name;
  int ranks;
  int chunks = 1;
  int slices = 1;
};

constexpr std::array kPipelines = {
    Pipeline{"naive", 1},    Pipeline{"naive", 2},         Pipeline{"gpipe", 2},          Pipeline{"1f1b", 2},
    Pipeline{"1f1b", 4},     Pipeline{"eager-1f1b", 2},    Pipeline{"interleaved", 2, 2}, Pipeline{"bfs", 2, 2},
    Pipeline{"zb-h1", 2},    Pipeline{"zb-h2", 2},         Pipeline{"zb-auto", 2},        Pipeline{"izb", 2, 2},
    Pipeline{"zb-v", 2},     Pipeline{"v-half", 2},        Pipeline{"v-min", 2},          Pipeline{"v-1f1b", 2},
    Pipeline{"dualpipe", 2}, Pipeline{"dualpipev", 2},     Pipeline{"chimera", 2},        Pipeline{"hanayo", 2, 2},
    Pipeline{"bpipe", 2},    Pipeline{"seq1f1b", 2, 1, 2},
};

// A product is a value of each of these.
enum Factor : std::size_t { kPipeline, kData, kTensor, kContext, kExpert, kZero, kRebuild, kSends, kFactors };
constexpr std::array<int, kFactors> kValues = {static_cast<int>(kPipelines.size()), 2, 3, 3, 2, 4, 3, 2};
using Product = std::array<int, kFactors>;

/// Slices are not shared by context ranks, experts are spread and state is sharded over replicas or context ranks only,
/// and where stages have copies in a pipeline up to ZeRO 1.
bool exists(const Product& product) {
  const Pipeline& pipeline = kPipelines[static_cast<std::size_t>(product[kPipeline])];
  const std::string name = pipeline.name;
  const bool has_copies = name == "dualpipe" || name == "chimera";
  const bool has_replicas = product[kData] > 0 || product[kContext] > 0;
  return (pipeline.slices == 1 || product[kContext] == 0) && (product[kZero] == 0 || has_replicas) &&
         (product[kExpert] == 0 || has_replicas) && (product[kZero] <= 1 || !has_copies);
}

std::vector<Product> all_products() {
  std::vector<Product> products;
  Product product{};
  while (true) {
    if (exists(product)) products.push_back(product);
    std::size_t factor = 0;
    while (factor < kFactors && ++product[factor] == kValues[factor]) product[factor++] = 0;
    if (factor == kFactors) return products;
  }
}

using Pair = std::array<int, 4>;  // two factors and their values
std::vector<Pair> pairs_of(const Product& product) {
  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < kFactors; ++a)
    for (std::size_t b = a + 1; b < kFactors; ++b)
      pairs.push_back({static_cast<int>(a), static_cast<int>(b), product[a], product[b]});
  return pairs;
}

/// Greedily: the product with most pairs that have not been seen, until all have.
std::vector<Product> pairwise_cover() {
  const std::vector<Product> all = all_products();
  std::set<Pair> missing;
  for (const Product& product : all)
    for (const Pair& pair : pairs_of(product)) missing.insert(pair);
  std::vector<Product> cover;
  while (!missing.empty()) {
    const auto gain = [&](const Product& product) {
      return std::ranges::count_if(pairs_of(product), [&](const Pair& pair) { return missing.contains(pair); });
    };
    cover.push_back(*std::ranges::max_element(all, {}, gain));
    for (const Pair& pair : pairs_of(cover.back())) missing.erase(pair);
  }
  return cover;
}

/// Four heads, so that two tensor and two context ranks can share them; every other block has experts.
std::vector<Layer> model() {
  std::vector<Layer> layers = with_dropout(gpt_model(), 0.1);
  layers[2] = layers[4] = shared_expert_block();
  for (Layer& layer : layers)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->heads = block->kv_heads = 4, block->head_size = 4;
  return layers;
}

constexpr int kMicrobatches = 4;

RunSpec spec_of(const Product& product) {
  const Pipeline& pipeline = kPipelines[static_cast<std::size_t>(product[kPipeline])];
  const int data = product[kData] + 1, context = product[kContext] > 0 ? 2 : 1;
  const Schedule order = make_schedule(
      pipeline.name,
      {.ranks = pipeline.ranks, .microbatches = kMicrobatches, .chunks = pipeline.chunks, .slices = pipeline.slices});
  RunSpec spec =
      spec_of_lowered(model(), lower(order, {.data = {.enabled = data * context > 1, .zero = product[kZero]}}), data);
  spec.zero = product[kZero];
  spec.grid.tensor = product[kTensor] > 0 ? 2 : 1;
  spec.grid.context = context;
  spec.grid.expert = product[kExpert] + 1;
  spec.sequence_parallel = product[kTensor] == 2;
  spec.context_attention = product[kContext] == 2 ? ContextAttention::kUlysses : ContextAttention::kRing;
  spec.rebuild = std::array{Rebuild::kNothing, Rebuild::kStage, Rebuild::kSelective}[product[kRebuild]];
  spec.sends = product[kSends] == 1 ? Sends::kRendezvous : Sends::kBuffered;
  spec.sequence = 8;
  return spec;
}

std::string to_text(const Product& product) {
  const Pipeline& pipeline = kPipelines[static_cast<std::size_t>(product[kPipeline])];
  return std::string(pipeline.name) + " pp " + std::to_string(pipeline.ranks) + " dp " +
         std::to_string(product[kData] + 1) + std::array{" tp 1", " tp 2", " tp 2 sp"}[product[kTensor]] +
         std::array{" cp 1", " cp 2 ring", " cp 2 ulysses"}[product[kContext]] + " ep " +
         std::to_string(product[kExpert] + 1) + " zero " + std::to_string(product[kZero]) +
         std::array{"", " recomputed", " recomputed selectively"}[product[kRebuild]] +
         (product[kSends] == 1 ? " rendezvous" : "");
}

}  // namespace

TEST_CASE("products of layouts and schedules give the gradients of one rank") {
  std::map<int, ModelValues> expected;  // [replicas]
  for (const int data : {1, 2}) {
    RunSpec alone = one_rank(model(), data * kMicrobatches);
    alone.sequence = 8;
    expected[data] = gradients_of(alone);
  }
  const std::vector<Product> products = std::getenv("PLUMB_ALL_LAYOUTS") != nullptr ? all_products() : pairwise_cover();
  for (const Product& product : products) {
    CAPTURE(to_text(product));
    CHECK(worst_difference(gradients_of(spec_of(product)), expected[product[kData] + 1]) <= 1e-5);
  }
  MESSAGE(products.size(), " products of ", all_products().size());
}
