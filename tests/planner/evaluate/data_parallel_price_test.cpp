#include "planner/evaluate/data_parallel_price.h"

#include <doctest/doctest.h>

#include "planner/price/pricing.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kReplicatedParameters = 100'000'000;
const Replicated kStage{.parameters = kReplicatedParameters,
                        .largest_layer = kReplicatedParameters / 10,
                        .groups = {.sharers = {.ranks = 8, .nodes = 1, .ranks_per_node = 8}}};
constexpr Seconds kPass{1};  // longer than any of the collectives

/// Replicas of kStage on the eight devices of a node.
DataParallelPrice price_of(int zero, bool with_stack, bool narrow = false) {
  TrainingSpec training{.global_batch = 8, .sequence = 512};
  if (with_stack) training.stack = StackSpec{.name = "any", .fp8 = {.weight_gathers = narrow}};
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

TEST_CASE("beside a backward that is too short gathers and reductions wait for each other") {
  TrainingSpec training{.global_batch = 8, .sequence = 512};
  training.stack = StackSpec{.name = "any"};
  Pricing pricing(small_gpt(), preset_cluster("a100:8"), training);
  const DataParallelPrice whole = price_of(3, false);
  const Seconds gather = whole.unshard.front().front().seconds;
  const Seconds reduce = whole.reduce_grad.front().front().seconds;
  const auto exposed = [&](Seconds forward, Seconds backward) {
    const DataParallelPrice price = data_parallel_price(pricing, {.data = 8, .zero = 3}, kStage, forward, backward, {});
    return std::pair(price.unshard.front().front().seconds / gather,
                     price.reduce_grad.front().front().seconds / reduce);
  };
  CHECK(exposed(kPass, gather + reduce).second == doctest::Approx(.1));
  // Either would be hidden alone.
  CHECK(exposed(kPass, std::max(gather, reduce)).second ==
        doctest::Approx((std::min(gather, reduce) - .1 * gather) / reduce));
  CHECK(exposed(.5 * gather, kPass).first == doctest::Approx(.5));
}

TEST_CASE("flat buffers are copied in both passes") {
  TrainingSpec training{.global_batch = 8, .sequence = 512};
  training.stack = StackSpec{.name = "any", .gather_copy_bytes = 4, .reduce_copy_bytes = 6};
  const ClusterSpec cluster = preset_cluster("a100:8");
  Pricing pricing(small_gpt(), cluster, training);
  const DataParallelPrice price = data_parallel_price(pricing, {.data = 8, .zero = 3}, kStage, kPass, kPass, {});
  const DataParallelPrice in_place = price_of(3, true);
  const double rate = cluster.device.memory_bytes_per_second * cluster.device.memory_efficiency;
  CHECK((price.forward_slowed - in_place.forward_slowed).count() == doctest::Approx(4 * kReplicatedParameters / rate));
  CHECK((price.backward_slowed - in_place.backward_slowed).count() ==
        doctest::Approx(10 * kReplicatedParameters / rate));
}

TEST_CASE("copies of a group that shares state sum its shares over their own links") {
  TrainingSpec training{.global_batch = 16, .sequence = 512};
  training.stack = StackSpec{.name = "any"};
  Pricing pricing(small_gpt(), preset_cluster("a100:16"), training);
  const Layout layout{.data = 16, .zero = 2, .shard = 8};
  const Pricing::ReplicaGroups groups = pricing.placements(layout).replicas.front();
  CHECK(groups.sharers == GroupPlacement{.ranks = 8, .nodes = 1, .ranks_per_node = 8});
  CHECK(groups.copies == GroupPlacement{.ranks = 2, .nodes = 2, .ranks_per_node = 1});
  Replicated stage = kStage;
  stage.groups = groups;
  const Seconds reduce =
      data_parallel_price(pricing, layout, stage, kPass, kPass, {}).reduce_grad.front().front().seconds;
  const Seconds in_node = price_of(2, true).reduce_grad.front().front().seconds;
  const Seconds copies =
      pricing.collective_time(groups.copies, CollectiveKind::kAllReduce, kReplicatedParameters / 8 * 4);
  CHECK((reduce - in_node) / copies == doctest::Approx(1));
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
