#include "planner/partition/balanced_partition.h"

#include <numeric>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

/// Returns the slowest part of the best split, by trying all splits.
double best_by_trial(int layers, int parts, const LayerLoads& weights, int part = 0) {
  const double extra = (part == 0 ? weights.embedding.count() : 0) + (part == parts - 1 ? weights.head.count() : 0);
  if (part == parts - 1) return layers * weights.transformer.count() + extra;
  double best = 1e300;
  for (int here = 1; here <= layers - (parts - part - 1); ++here) {
    best = std::min(best, std::max(here * weights.transformer.count() + extra,
                                   best_by_trial(layers - here, parts, weights, part + 1)));
  }
  return best;
}

double slowest(const std::vector<int>& split, const LayerLoads& weights) {
  double result = 0;
  for (std::size_t i = 0; i < split.size(); ++i) {
    const double extra = (i == 0 ? weights.embedding.count() : 0) + (i + 1 == split.size() ? weights.head.count() : 0);
    result = std::max(result, split[i] * weights.transformer.count() + extra);
  }
  return result;
}

}  // namespace

TEST_CASE("layers that divide evenly stay even while embedding and head are small") {
  const Partition even =
      balanced_partition(8, {.transformer = Seconds{1}, .head = Seconds{0.01}}, loop_placement(4, 4));
  CHECK(even.split == std::vector{2, 2, 2, 2});
  CHECK(even.notes.empty());
}

TEST_CASE("a heavy head takes layers off the last stage, and that is said") {
  const Partition split =
      balanced_partition(32, {.transformer = Seconds{1}, .head = Seconds{2.4}}, loop_placement(4, 4));
  CHECK(split.split == std::vector{9, 9, 8, 6});
  REQUIRE(split.notes.size() == 1);
  CHECK(split.notes[0].find("9x2,8,6") != std::string::npos);
}

TEST_CASE("a remainder is spread over the stages, and that is said") {
  const Partition split = balanced_partition(10, {.transformer = Seconds{1}}, loop_placement(4, 4));
  CHECK(split.split == std::vector{3, 3, 2, 2});
  REQUIRE(split.notes.size() == 1);
  CHECK(split.notes[0].find("10 layers do not divide into 4") != std::string::npos);
}

TEST_CASE("no split has a faster slowest stage") {
  for (int layers = 4; layers <= 11; ++layers) {
    for (int parts = 1; parts <= 4; ++parts) {
      for (const double head : {0.0, 0.4, 1.0, 2.5, 7.0}) {
        for (const double embedding : {0.0, 0.3, 1.7}) {
          const LayerLoads weights{.embedding = Seconds{embedding}, .transformer = Seconds{1}, .head = Seconds{head}};
          const std::vector<int> split = balanced_partition(layers, weights, loop_placement(parts, parts)).split;
          CAPTURE(layers);
          CAPTURE(parts);
          CAPTURE(head);
          CHECK(std::accumulate(split.begin(), split.end(), 0) == layers);
          // An even split is kept unless another is faster by 1 %.
          CHECK(slowest(split, weights) <= best_by_trial(layers, parts, weights) / 0.99);
        }
      }
    }
  }
}

TEST_CASE("chunks of equal cost go to the rank that has least") {
  // On 2 ranks with 2 chunks, 5 layers: parts 0 and 2 are on rank 0, 1 and 3 on rank 1, whose head weighs 0.5.
  const Partition split =
      balanced_partition(5, {.transformer = Seconds{1}, .head = Seconds{0.5}}, loop_placement(2, 4));
  CHECK(split.split == std::vector{2, 1, 1, 1});
}

TEST_CASE("parts hold consecutive layers, embedding first and head last") {
  const std::vector<Layer> layers = model_layers(small_gpt());
  const auto parts = layers_by_part(layers, {3, 4, 1});
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].size() == 4);
  CHECK(layer_kind_name(parts[0].front()) == "embedding");
  CHECK(parts[1].size() == 4);
  CHECK(layer_kind_name(parts[2].back()) == "head");
  check_refused<SpecError>([&] { layers_by_part(layers, {3, 4}); }, "split 3,4", "sum up to 8");
}

}  // namespace plumb::test
