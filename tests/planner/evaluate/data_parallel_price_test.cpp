#include "planner/evaluate/data_parallel_price.h"

#include <doctest/doctest.h>

#include "planner/price/pricing.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kReplicatedParameters = 100'000'000;
const Replicated kStage{.parameters = kReplicatedParameters,
                        .largest_layer = kReplicatedParameters / 10,
                        .group = {.ranks = 8, .nodes = 1, .ranks_per_node = 8}};
constexpr Seconds kPass{1};  // longer than any of the collectives

/// Replicas of kStage on the eight devices of a node.
DataParallelPrice price_of(int zero, bool with_stack, bool narrow = false) {
  TrainingSpec training{.global_batch = 8, .sequence = 512};
  if (with_stack) training.stack = StackSpec{.name = "any", .fp8_weight_gathers = narrow};
  if (narrow) training.precision = Precision::kFp8;
  Pricing pricing(small_gpt(), preset_cluster(narrow ? "h100:8" : "a100:8"), training);
  return data_parallel_price(pricing, {.data = 8, .zero = zero}, kStage, kPass, kPass, {});
}

}  // namespace

TEST_CASE("what a stack's ZeRO 3 hides costs the compute beside it the units that NCCL holds") {
  const DataParallelPrice price = price_of(3, true);
  const DataParallelPrice whole = price_of(3, false);  // of Plumb's own executor, which hides nothing
  const Seconds gather = whole.unshard.front().front().seconds;
  const Seconds reduce = whole.reduce_grad.front().front().seconds;
  constexpr double kHeld = 24.0 / 108;
  CHECK(price.forward_slowed / gather == doctest::Approx(kHeld));
  CHECK(price.backward_slowed / (gather + reduce) == doctest::Approx(kHeld));
  CHECK(price.unshard.front().front().seconds / gather == doctest::Approx(.1));  // the first layer's
}

TEST_CASE("weights that replicas gather in fp8 are half of the bytes") {
  const auto bytes = [](bool narrow) { return price_of(1, true, narrow).unshard.front().front().bytes; };
  CHECK(2 * bytes(true) == bytes(false));
}

TEST_CASE("what is not hidden slows nothing down") {
  for (const int zero : {0, 1, 2}) CHECK(price_of(zero, true).backward_slowed == Seconds{0});
  CHECK(price_of(3, false).forward_slowed == Seconds{0});
}

}  // namespace plumb::test
