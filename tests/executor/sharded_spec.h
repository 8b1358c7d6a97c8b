#pragma once
// Runs whose state is sharded over the copies of a stage, in all possible ways.

#include <vector>

#include <doctest/doctest.h>

#include "executor/training/run.h"
#include "tests/executor/small_model.h"

namespace plumb::test {

/// The way in which copies of a stage share gradients, optimizer state and weights.
struct Sharded {
  int zero = 0;
  ShardBy by = ShardBy::kElement;
  Sharding gathering;
  bool layerwise = false;
};

/// Returns a run of `order` whose copies of a stage share the state in this way.
inline RunSpec sharded_spec(const std::vector<Layer>& model, const Schedule& order, int data, const Sharded& sharded) {
  const LoweringOptions options{.data = {.enabled = data > 1, .zero = sharded.zero, .sharding = sharded.gathering}};
  RunSpec spec = spec_of_lowered(model, lower(order, options), data);
  spec.zero = sharded.zero;
  spec.shard_by = sharded.by;
  spec.layerwise = sharded.layerwise;
  return spec;
}

inline const std::vector<Sharded> kAllShardings = {{.zero = 1},
                                                   {.zero = 1, .by = ShardBy::kLayer},
                                                   {.zero = 2},
                                                   {.zero = 2, .by = ShardBy::kLayer},
                                                   {.zero = 3},
                                                   {.zero = 3, .by = ShardBy::kLayer},
                                                   {.zero = 3, .gathering = {.gathered_stages = 1}},
                                                   {.zero = 3, .gathering = {.gathered_stages = 1, .prefetch = true}},
                                                   {.zero = 2, .layerwise = true},
                                                   {.zero = 3, .layerwise = true},
                                                   {.zero = 3, .by = ShardBy::kLayer, .layerwise = true}};

inline std::vector<double> losses_after(RunSpec spec, int steps) {
  spec.steps = steps;
  return run(spec).losses;
}

inline void check_losses(const std::vector<double>& losses, const std::vector<double>& expected) {
  REQUIRE(losses.size() == expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(1e-4));
}

}  // namespace plumb::test
