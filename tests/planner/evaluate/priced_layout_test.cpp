#include "planner/evaluate/priced_layout.h"

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/price/layer/model_flops.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

struct Priced {
  Schedule order;
  PricedLayout layout;
  CostTable costs;
};

Priced price(const ModelSpec& model, int devices, const Layout& layout) {
  Pricing pricing(model, round_cluster(devices), kSmallTraining);
  Schedule order = order_of(kSmallTraining, layout);
  PricedLayout priced = price_layout(pricing, layout, order);
  CostTable costs = cost_table(priced);
  return {std::move(order), std::move(priced), std::move(costs)};
}

double action_s(const Priced& priced, Op op, int stage = 0) {
  return to_seconds(duration_of(priced.costs, {.op = op, .stage = stage})).count();
}

double collective_seconds(const Priced& priced, Op op, CollectiveKind kind, int stage = 0) {
  double sum = 0;
  for (const Segment& segment : segments_of(priced.costs, {.op = op, .stage = stage})) {
    if (segment.kind == Segment::Kind::kCollective && segment.collective == kind) sum += segment.seconds.count();
  }
  return sum;
}

constexpr double kPicosecond = 2e-12;  // each action is rounded to one

}  // namespace

TEST_CASE("a whole backward is its input and weight gradient") {
  const Priced priced = price(small_gpt(), 1, {});
  CHECK(action_s(priced, Op::kBackward) ==
        doctest::Approx(action_s(priced, Op::kInputGrad) + action_s(priced, Op::kWeightGrad)).epsilon(kPicosecond));
}

TEST_CASE("recomputation stands at the head of the backward: full adds the transformer layers' forward") {
  const Priced none = price(small_gpt(), 1, {});
  const Priced full = price(small_gpt(), 1, {.recompute = Recompute::kFull});
  const Priced selective = price(small_gpt(), 1, {.recompute = Recompute::kSelective});
  CHECK(action_s(full, Op::kForward) == action_s(none, Op::kForward));
  const double added = action_s(full, Op::kBackward) - action_s(none, Op::kBackward);
  CHECK(added < action_s(none, Op::kForward));  // embedding and head are not repeated
  CHECK(added > 0.8 * action_s(none, Op::kForward));
  CHECK(action_s(selective, Op::kBackward) > action_s(none, Op::kBackward));
  CHECK(action_s(selective, Op::kBackward) < action_s(full, Op::kBackward));
}

TEST_CASE("a tensor group all-reduces twice a layer and pass; sequence parallelism gathers and scatters instead") {
  // 8 layers, E = 512 tokens x 1024 x 2 bytes over 4 ranks of one node; and the embedding's, and the three numbers of
  // the head's loss from each rank, gathered.
  const double ring = 2 * 3 * (1e-6 + 512.0 * 1024 * 2 / (4 * 100e9));
  const double loss = 3 * (1e-6 + 4 * 3 * 512.0 * 4 / (4 * 100e9));
  const Priced plain = price(small_gpt(), 4, {.tensor = 4});
  CHECK(collective_seconds(plain, Op::kForward, CollectiveKind::kAllReduce) == doctest::Approx((2 * 8 + 1) * ring));
  CHECK(collective_seconds(plain, Op::kForward, CollectiveKind::kAllGather) == doctest::Approx(loss));
  CHECK(collective_seconds(plain, Op::kInputGrad, CollectiveKind::kAllReduce) == doctest::Approx((2 * 8 + 1) * ring));
  CHECK(collective_seconds(plain, Op::kWeightGrad, CollectiveKind::kAllReduce) == 0);
  const Priced divided = price(small_gpt(), 4, {.tensor = 4, .sequence_parallel = true});
  CHECK(collective_seconds(divided, Op::kForward, CollectiveKind::kReduceScatter) ==
        doctest::Approx((2 * 8 + 1) * ring / 2));
  CHECK(collective_seconds(divided, Op::kForward, CollectiveKind::kAllGather) ==
        doctest::Approx((2 * 8 + 1) * ring / 2 + loss));
  CHECK(collective_seconds(divided, Op::kWeightGrad, CollectiveKind::kAllGather) ==
        doctest::Approx((4 * 8 + 2) * ring / 2));
}

TEST_CASE("a context group passes keys and values round, and their gradients, and shares the work") {
  // 8 layers, keys and values of 512 tokens x 1024 x 2 bytes each over 4 ranks of one node.
  const double ring = 8 * 3 * (1e-6 + 512.0 * 2 * 1024 * 2 / (4 * 100e9));
  const Priced alone = price(small_gpt(), 1, {}), shared = price(small_gpt(), 4, {.context = 4});
  CHECK(collective_seconds(shared, Op::kForward, CollectiveKind::kAllGather) == doctest::Approx(ring));
  CHECK(collective_seconds(shared, Op::kInputGrad, CollectiveKind::kAllGather) == doctest::Approx(ring));
  CHECK(collective_seconds(shared, Op::kInputGrad, CollectiveKind::kReduceScatter) == doctest::Approx(ring));
  CHECK(collective_seconds(shared, Op::kWeightGrad, CollectiveKind::kAllGather) == 0);
  CHECK(action_s(shared, Op::kForward) - ring == doctest::Approx(action_s(alone, Op::kForward) / 4));
}

TEST_CASE("gradients are all-reduced in their precision; ZeRO scatters them and gathers the weights") {
  const auto parameters = static_cast<double>(model_parameter_count(small_gpt()));
  const Priced plain = price(small_gpt(), 4, {.data = 4});
  CHECK(action_s(plain, Op::kReduceGrad) ==
        doctest::Approx(2 * 3 * (1e-6 + 4 * parameters / (4 * 100e9))));  // ranks 0..3 of one node
  CHECK(action_s(plain, Op::kUnshard) == 0);
  for (const int zero : {1, 2, 3}) {
    const Priced sharded = price(small_gpt(), 4, {.data = 4, .zero = zero});
    CHECK(action_s(sharded, Op::kReduceGrad) == doctest::Approx(3 * (1e-6 + 4 * parameters / (4 * 100e9))));
    CHECK(action_s(sharded, Op::kUnshard) == doctest::Approx(3 * (1e-6 + 2 * parameters / (4 * 100e9))));
    CHECK(action_s(sharded, Op::kReshard) == 0);
  }
}

TEST_CASE("the optimizer updates all parameters, or the rank's shard") {
  const auto parameters = static_cast<double>(model_parameter_count(small_gpt()));
  // bf16 with fp32 gradients: 2 x 4 gradient, 24 moments and master, 2 copy, at 1 TB/s.
  CHECK(action_s(price(small_gpt(), 1, {}), Op::kOptimizerStep) == doctest::Approx(34 * parameters / 1e12));
  CHECK(action_s(price(small_gpt(), 4, {.data = 4, .zero = 1}), Op::kOptimizerStep) ==
        doctest::Approx(34 * parameters / 4 / 1e12).epsilon(1e-4));
}

TEST_CASE("messages are a residual stream, divided under sequence parallelism, over the link of their ranks") {
  const Priced plain = price(small_gpt(), 8, {.tensor = 4, .pipeline = 2, .microbatch = 2});
  CHECK(plain.costs.stages[0].activation_message_bytes == 2 * 512 * 1024 * 2);
  CHECK(plain.costs.stages[1].gradient_message_bytes == 2 * 512 * 1024 * 2);
  CHECK(link_between(plain.costs, 0, 1).bytes_per_second == 10e9);  // stage 1 fills the other node
  const Priced divided =
      price(small_gpt(), 8, {.tensor = 4, .pipeline = 2, .sequence_parallel = true, .microbatch = 2});
  CHECK(divided.costs.stages[0].activation_message_bytes == 2 * 512 * 1024 * 2 / 4);
  const Priced inside = price(small_gpt(), 4, {.pipeline = 4});
  CHECK(link_between(inside.costs, 2, 1).bytes_per_second == 100e9);
}

TEST_CASE("the two uses of a tied table sum their gradients before the step") {
  ModelSpec tied = small_gpt();
  tied.tied_embeddings = true;
  const Layout layout{.pipeline = 2};
  const double table = 8192.0 * 1024 * 4;
  for (const int stage : {0, 1}) {
    CHECK(collective_seconds(price(tied, 2, layout), Op::kOptimizerStep, CollectiveKind::kAllReduce, stage) ==
          doctest::Approx(2 * (1e-6 + table / 2 / 100e9)));
    CHECK(collective_seconds(price(small_gpt(), 2, layout), Op::kOptimizerStep, CollectiveKind::kAllReduce, stage) ==
          0);
  }
  CHECK(collective_seconds(price(tied, 1, {}), Op::kOptimizerStep, CollectiveKind::kAllReduce) == 0);
}

TEST_CASE("sequences beyond the learned positions are refused") {
  ModelSpec model = preset_model("gpt2");
  CHECK_NOTHROW(Pricing(model, round_cluster(1), kSmallTraining));
  model.positions = kSmallTraining.sequence - 1;
  CHECK_THROWS_WITH_AS(
      Pricing(model, round_cluster(1), kSmallTraining),
      "gpt2 has 511 positions, and a sequence of 512 tokens needs as many: give sequences of 511 or fewer", SpecError);
}

TEST_CASE("a split of the user's is taken as it is, or refused") {
  const Priced priced = price(small_gpt(), 2, {.pipeline = 2, .split = {3, 5}});
  Pricing pricing(small_gpt(), round_cluster(2), kSmallTraining);
  CHECK(priced.layout.split == std::vector{3, 5});
  CHECK(layers_by_part(pricing, priced.layout.split)[0].size() == 4);
  check_refused<SpecError>([] { price(small_gpt(), 2, {.pipeline = 2, .split = {3, 4}}); }, "split 3,4", "sum up to 8");
  check_refused<SpecError>([] { price(small_gpt(), 2, {.pipeline = 2, .split = {8}}); }, "split", "each");
}

TEST_CASE("1F1B over equal stages with free links takes (m + p - 1) of a stage's work, and the step") {
  ClusterSpec cluster = round_cluster(4);
  cluster.node_link = LinkSpec{.bytes_per_second = 1e30};
  ModelSpec model = small_gpt();
  model.vocab = 1;  // embedding and head next to nothing
  model.positions = 0;
  Pricing pricing(model, cluster, kSmallTraining);
  const Layout layout{.pipeline = 4};
  const Evaluation predicted = evaluate(pricing, layout);
  const auto of = [&](Op op, int stage) {
    return to_seconds(duration_of(predicted.costs, {.op = op, .stage = stage})).count();
  };
  const double stage = of(Op::kForward, 1) + of(Op::kBackward, 1);
  CHECK(step_time(predicted.simulation).count() ==
        doctest::Approx((16 + 3) * stage + of(Op::kOptimizerStep, 1)).epsilon(0.01));  // the two thin ends differ
}

TEST_CASE("model FLOPs are 6 N + 12 L a d s a token") {
  const ModelSpec model = preset_model("llama-3-8b");
  const TrainingSpec training{.global_batch = 2, .sequence = 4096};
  const double products = 8'030'261'248.0 - 128256.0 * 4096;  // all but the token table
  const double attention = 12.0 * 32 * 4096 * 4096;
  CHECK(model_flops_per_step(model, training) == doctest::Approx(2 * 4096 * (6 * products + attention)).epsilon(1e-12));
  ModelSpec windowed = model;
  windowed.window = 1024;
  CHECK(model_flops_per_step(windowed, training) ==
        doctest::Approx(2 * 4096 * (6 * products + attention / 4)).epsilon(1e-12));
  // At the peak of all devices the utilization is 1.
  const ClusterSpec cluster = round_cluster(4);
  const double tokens = 2 * 4096;
  const double whole = model_flops_per_step(model, training);
  const double layers = tokens * (2 * (products - 128256.0 * 4096) + attention / 3);  // their forward
  const auto counted = [&](Recompute recompute, FlopsCount count) {
    return counted_flops_per_step(model, training, recompute, count);
  };
  CHECK(counted(Recompute::kFull, FlopsCount::kModel) == whole);
  CHECK(counted(Recompute::kNone, FlopsCount::kExecuted) == whole);
  CHECK(counted(Recompute::kFull, FlopsCount::kCausal) == doctest::Approx(whole - tokens * attention / 2));
  CHECK(counted(Recompute::kSelective, FlopsCount::kExecuted) == doctest::Approx(whole + tokens * attention / 3));
  CHECK(counted(Recompute::kFull, FlopsCount::kExecuted) == doctest::Approx(whole + layers));
  CHECK(flops_utilization(whole, training, cluster, Seconds{whole / 400e12}) == doctest::Approx(1.0));
}

TEST_CASE("stages of the same layers are priced once, the first and the last by themselves") {
  Pricing pricing(small_gpt(), round_cluster(8), kSmallTraining);
  const Layout even{.pipeline = 8};
  const Schedule order = order_of(kSmallTraining, even);
  const PricedLayout prices = price_layout(pricing, even, order);
  CHECK(prices.kind_of_stage == std::vector<int>{0, 1, 1, 1, 1, 1, 1, 2});
  CHECK(prices.kinds.stages.size() == 3);
  CHECK(prices.links.size() == 14);

  const Layout uneven{.pipeline = 4, .split = {1, 3, 1, 3}};
  const Schedule four = order_of(kSmallTraining, uneven);
  CHECK(price_layout(pricing, uneven, four).kind_of_stage == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a simulation is given the prices of each stage's kind") {
  Pricing pricing(small_gpt(), round_cluster(8), kSmallTraining);
  for (const Layout& layout :
       {Layout{.pipeline = 8}, Layout{.data = 2, .pipeline = 4, .zero = 1},
        Layout{.pipeline = 4, .chunks = 2, .recompute = Recompute::kFull, .schedule = "interleaved"},
        Layout{.tensor = 2, .pipeline = 4, .schedule = "zb-h1"}}) {
    CAPTURE(to_text(layout));
    const Schedule order = order_of(kSmallTraining, layout);
    const PricedLayout prices = price_layout(pricing, layout, order);
    const CostTable costs = cost_table(prices);
    REQUIRE(costs.stages.size() == prices.kind_of_stage.size());
    for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
      for (const Op op : {Op::kForward, Op::kBackward, Op::kInputGrad, Op::kOptimizerStep}) {
        const auto at = [&](std::int32_t s) { return Action{.op = op, .stage = s}; };
        CHECK(duration_of(costs, at(static_cast<std::int32_t>(stage))) ==
              duration_of(prices.kinds, at(prices.kind_of_stage[stage])));
      }
      CHECK(costs.stages[stage].memory.forward_bytes ==
            prices.kinds.stages[prices.kind_of_stage[stage]].memory.forward_bytes);
    }
    for (const StageLink& link : prices.links)
      CHECK(link_between(costs, link.source, link.destination).latency == link.cost.latency);
  }
}

TEST_CASE("each layer that is rebuilt makes a stage's backward longer by the same time, and its memory smaller") {
  TrainingSpec training = kSmallTraining;
  training.stack = StackSpec{.name = "any"};
  Pricing pricing(small_gpt(), round_cluster(2), training);
  const auto priced = [&](Recompute recompute, int layers) {
    const Layout layout{.pipeline = 2, .recompute = recompute, .recompute_layers = layers, .split = {4, 4}};
    return cost_table(price_layout(pricing, layout, short_order_of(training, layout)));
  };
  const CostTable none = priced(Recompute::kNone, 0), all = priced(Recompute::kFull, 0);
  const auto backward = [](const CostTable& costs, int stage) {
    return duration_of(costs, {.op = Op::kBackward, .stage = stage});
  };
  for (const int stage : {0, 1}) {
    const SimTime of_layer = (backward(all, stage) - backward(none, stage)) / 4;
    std::int64_t held = none.stages[stage].memory.forward_bytes;
    CHECK(of_layer > SimTime{0});
    for (int layers = 1; layers <= 4; ++layers) {
      const CostTable some = priced(Recompute::kFull, layers);
      const SimTime longer = backward(some, stage) - backward(none, stage);
      CHECK(std::abs((longer - layers * of_layer).count()) <= 4);  // picoseconds of rounding
      CHECK(some.stages[stage].memory.forward_bytes < held);
      held = some.stages[stage].memory.forward_bytes;
      CHECK(duration_of(some, {.op = Op::kForward, .stage = stage}) ==
            duration_of(none, {.op = Op::kForward, .stage = stage}));
    }
    CHECK(held == all.stages[stage].memory.forward_bytes);
    CHECK(backward(priced(Recompute::kFull, 9), stage) == backward(all, stage));
  }
}

}  // namespace plumb::test
