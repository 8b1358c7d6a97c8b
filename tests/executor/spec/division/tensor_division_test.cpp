#include "executor/spec/division/tensor_division.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/executor/small_model.h"

namespace plumb::test {

TEST_CASE("the ranks' shares are disjoint, cover the whole parameter and have the share's size") {
  std::vector<Layer> layers = {EmbeddingLayer{.vocab = 33, .hidden = 16, .positions = 8}, llama_block(), gpt_block(),
                               HeadLayer{.vocab = 33, .hidden = 16, .norm = NormKind::kLayerNorm}};
  for (const Layer& layer : layers) {
    const std::vector<ParameterTensor> whole = layer_parameters(layer);
    const std::vector<ParameterTensor> share = layer_parameters(divide_layer(layer, 2, 2));
    for (std::size_t parameter = 0; parameter < whole.size(); ++parameter) {
      CAPTURE(whole[parameter].name);
      std::multiset<std::int64_t> taken;
      for (int rank = 0; rank < 2; ++rank) {
        std::int64_t local = 0;
        for (const ElementRun& run : element_runs(layer, parameter, {.ranks = 2, .rank = rank})) {
          CHECK(run.local >= local);
          local = run.local + run.count;
          for (std::int64_t i = 0; i < run.count; ++i) taken.insert(run.whole + i);
        }
        CHECK(local <= element_count(share[parameter]));
      }
      const bool is_divided = whole[parameter].split_dimension >= 0;
      CHECK(static_cast<std::int64_t>(taken.size()) == element_count(whole[parameter]) * (is_divided ? 1 : 2));
      CHECK(std::set<std::int64_t>(taken.begin(), taken.end()).size() ==
            static_cast<std::size_t>(element_count(whole[parameter])));
    }
  }
}

TEST_CASE("experts are whole on the ranks that have them, and divided by tensor ranks like an MLP") {
  const Layer layer = mixtral_block();
  const std::vector<ParameterTensor> whole = layer_parameters(layer);
  for (std::size_t parameter = 0; parameter < whole.size(); ++parameter) {
    if (!whole[parameter].expert) continue;
    CAPTURE(whole[parameter].name);
    std::multiset<std::int64_t> taken;
    for (int expert = 0; expert < 2; ++expert)
      for (int rank = 0; rank < 2; ++rank) {
        std::int64_t local = 0;
        for (const ElementRun& run : element_runs(layer, parameter, {.ranks = 2, .rank = rank},
                                                  {.ranks = 2, .rank = expert, .tensor = {.ranks = 2, .rank = rank}})) {
          CHECK(run.local == local);
          local += run.count;
          for (std::int64_t i = 0; i < run.count; ++i) {
            taken.insert(run.whole + i);
            CHECK((run.whole + i) / (element_count(whole[parameter]) / 2) == expert);
          }
        }
        CHECK(local == element_count(whole[parameter]) / 4);
      }
    CHECK(taken.size() == std::set<std::int64_t>(taken.begin(), taken.end()).size());
    CHECK(static_cast<std::int64_t>(taken.size()) == element_count(whole[parameter]));
  }
  REQUIRE(whole[5].name == "experts.gate_up.weight");  // 4 experts, 12 gates and 12 ups
  const std::vector<ElementRun> runs =
      element_runs(layer, 5, {.ranks = 2, .rank = 1}, {.ranks = 2, .rank = 1, .tensor = {.ranks = 2, .rank = 1}});
  CHECK(runs[1].whole == (2 * 24 + 18) * 16);
  // Tensor ranks that do not share experts have theirs whole.
  const std::vector<ElementRun> alone = element_runs(layer, 5, {.ranks = 2, .rank = 1}, {.ranks = 2, .rank = 1});
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].whole == 2 * 24 * 16);
  CHECK(alone[0].count == 2 * 24 * 16);
}

TEST_CASE("heads of queries, keys and values stay together, and so do a channel's gate and up") {
  // The block has 4 heads and 2 kv heads of 4 channels, and 16 hidden channels: rank 1 has query rows 8-15, key rows
  // 20-23, value rows 28-31.
  const Layer layer = llama_block();
  const auto starts = [&](std::size_t parameter) {
    std::vector<std::int64_t> rows;
    for (const ElementRun& run : element_runs(layer, parameter, {.ranks = 2, .rank = 1}))
      rows.push_back(run.whole / 16);
    return rows;
  };
  REQUIRE(layer_parameters(layer)[1].name == "qkv.weight");
  CHECK(starts(1) == std::vector<std::int64_t>{8, 20, 28});
  REQUIRE(layer_parameters(layer)[4].name == "gate_up.weight");
  CHECK(starts(4) == std::vector<std::int64_t>{12, 36});  // 24 channels
}

TEST_CASE("a run is cut to what lies within a range of the rank's parameter") {
  const ElementRun run{.local = 10, .whole = 100, .count = 8, .is_replica = true};
  const auto cut = [&](std::int64_t first, std::int64_t count) {
    const ElementRun part = within(run, first, count);
    CHECK(part.is_replica);
    return std::vector<std::int64_t>{part.local, part.whole, part.count};
  };
  CHECK(cut(0, 100) == std::vector<std::int64_t>{10, 100, 8});
  CHECK(cut(12, 3) == std::vector<std::int64_t>{12, 102, 3});
  CHECK(cut(0, 12) == std::vector<std::int64_t>{10, 100, 2});
  CHECK(within(run, 0, 10).count == 0);
  CHECK(within(run, 30, 5).count == 0);
}

TEST_CASE("ranks that share a kv head have the same rows, of which the first is told") {
  const Layer layer = llama_block();  // 4 heads, 2 kv heads of 4 channels
  CHECK(kv_sharers(layer, 2) == 1);
  CHECK(kv_sharers(layer, 4) == 2);
  CHECK(why_not_divisible(layer, 4, 4).empty());
  CHECK(std::get<TransformerLayer>(divide_layer(layer, 4, 4)).kv_heads == 1);
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<ElementRun> runs = element_runs(layer, 1, {.ranks = 4, .rank = rank});
    REQUIRE(runs.size() == 3);
    CHECK(runs[0].whole == 16 * (4 * rank));
    CHECK(runs[1].whole == 16 * (16 + 4 * (rank / 2)));
    CHECK(runs[2].whole == 16 * (24 + 4 * (rank / 2)));
    CHECK(!runs[0].is_replica);
    CHECK(runs[1].is_replica == (rank % 2 == 1));
    CHECK(runs[2].is_replica == (rank % 2 == 1));
  }
}

TEST_CASE("a row-parallel matrix is divided by columns") {
  const Layer layer = llama_block();
  REQUIRE(layer_parameters(layer)[2].name == "attention_output.weight");  // [16, 16]
  const std::vector<ElementRun> runs = element_runs(layer, 2, {.ranks = 2, .rank = 1});
  REQUIRE(runs.size() == 16);
  CHECK(runs[3].local == 3 * 8);
  CHECK(runs[3].whole == 3 * 16 + 8);
  CHECK(runs[3].count == 8);
}

TEST_CASE("what cannot be divided is said with its numbers") {
  CHECK(why_not_divisible(llama_block(), 2, 2).empty());
  TransformerLayer block = llama_block();
  block.heads = block.kv_heads = 6;
  CHECK(why_not_divisible(block, 4, 4).starts_with("6 heads cannot be divided over 4 tensor ranks"));
  block.heads = 12;
  CHECK(why_not_divisible(block, 4, 4) ==
        "6 kv heads cannot be divided over 4 tensor ranks; choose a tensor degree that divides them");
  block = llama_block();
  block.ffn = 25;
  CHECK(why_not_divisible(block, 2, 2).starts_with("25 ffn channels"));
  CHECK(why_not_divisible(block, 1, 1).empty());
  block = llama_block();
  block.query_key_norms = QueryKeyNorms::kAllHeads;
  CHECK(why_not_divisible(block, 1, 1).empty());
  CHECK(why_not_divisible(block, 2, 2).find("set tensor to 1, or norm each head by itself") != std::string::npos);
  CHECK(why_not_divisible(HeadLayer{.vocab = 3, .hidden = 4}, 4, 4) ==
        "a vocabulary of 3 tokens is less than 4 tensor ranks");
}

}  // namespace plumb::test
