// Searches find what practice has found, without a rule that says so.

#include <string>

#include <doctest/doctest.h>

#include "planner/search/search.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

SearchResult best_of(const char* model, const char* cluster, const char* stack, const TrainingSpec& asked) {
  TrainingSpec training = asked;
  training.stack = parse_stack(source_text(std::string("tools/specs/stacks/") + stack + ".json"), stack);
  Pricing pricing(preset_model(model), preset_cluster(cluster), training);
  return search_layouts(pricing, {}, {.keep = 1});
}

}  // namespace

TEST_CASE("tensor groups fill a node of A100 for the large models of Narayanan et al. 2021, as in their Table 1") {
  struct Row {
    const char* model;
    const char* cluster;
    std::int64_t global_batch;
  };
  for (const Row& row : {Row{"megatron-76b", "a100:1024", 1792}, Row{"megatron-145b", "a100:1536", 2304},
                         Row{"megatron-310b", "a100:1920", 2160}, Row{"megatron-530b", "a100:2520", 2520},
                         Row{"megatron-1t", "a100:3072", 3072}}) {
    CAPTURE(row.model);
    const SearchResult found =
        best_of(row.model, row.cluster, "megatron-lm-2021", {.global_batch = row.global_batch, .sequence = 2048});
    REQUIRE(found.ranked.size() == 1);
    CHECK(found.ranked.front().layout.tensor == 8);
  }
}

TEST_CASE("the best layout in fp8 is faster than the best in bf16 on H100") {
  const auto step = [](Precision precision) {
    const SearchResult found = best_of("llama-3-8b", "h100:64", "megatron-core",
                                       {.global_batch = 512, .sequence = 8192, .precision = precision});
    REQUIRE(found.ranked.size() == 1);
    return found.ranked.front().simulation.makespan;
  };
  CHECK(step(Precision::kFp8) < step(Precision::kBf16));
}

}  // namespace plumb::test
