#include "planner/evaluate/graph_stages.h"

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/search/search.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

TrainingSpec images(std::int64_t batch) {
  return {.global_batch = batch, .sequence = 1};
}

}  // namespace

TEST_CASE("every node has a stage, and stages of a deep network are balanced to a few per cent") {
  Pricing pricing(preset_model("resnet-101"), round_cluster(4), images(64));
  const Layout layout{.pipeline = 4, .microbatch = 8};
  const Partition partition = graph_partition(pricing, layout, order_of(pricing.training(), layout));
  CHECK(std::accumulate(partition.split.begin(), partition.split.end(), 0) == std::ssize(pricing.graph()->nodes));
  const CostTable costs = cost_table(price_layout(pricing, layout, order_of(pricing.training(), layout)));
  Seconds slowest{0}, all{0};
  for (int stage = 0; stage < 4; ++stage) {
    const Seconds time = to_seconds(duration_of(costs, {.op = Op::kForward, .stage = stage}) +
                                    duration_of(costs, {.op = Op::kBackward, .stage = stage}));
    slowest = std::max(slowest, time);
    all += time;
  }
  CHECK(slowest / all < 0.25 * 1.05);
}

TEST_CASE("a stage sends all tensors that cross its end, and sends back the gradients of those before it") {
  Pricing pricing(preset_model("resnet-50"), round_cluster(2), images(8));
  const std::vector<GraphNode>& nodes = pricing.graph()->nodes;
  const auto inside = std::ranges::find(nodes, "stage1.1.norm1", &GraphNode::name);
  const auto first = static_cast<int>(inside - nodes.begin());
  const Layout layout{.pipeline = 2, .microbatch = 4, .split = {first, static_cast<int>(nodes.size()) - first}};
  const CostTable costs = cost_table(price_layout(pricing, layout, order_of(pricing.training(), layout)));
  // conv1's 56 x 56 x 64, and the block's input of 56 x 56 x 256 for the sum, of 4 images in bf16.
  CHECK(costs.stages[0].activation_message_bytes == 4 * 56 * 56 * (64 + 256) * 2);
  CHECK(costs.stages[1].gradient_message_bytes == 4 * 56 * 56 * (64 + 256) * 2);
  CHECK(costs.stages[1].activation_message_bytes == 0);
  CHECK(costs.stages[0].gradient_message_bytes == 0);
}

TEST_CASE("the time of a network does not depend on where it is cut, and its weights neither") {
  Pricing pricing(preset_model("bert-base"), round_cluster(4), {.global_batch = 8, .sequence = 128});
  const auto sums = [&](const Layout& layout) {
    const CostTable costs = cost_table(price_layout(pricing, layout, order_of(pricing.training(), layout)));
    std::pair<double, std::int64_t> sum{0, 0};
    for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
      sum.first += to_seconds(duration_of(costs, {.op = Op::kForward, .stage = static_cast<int>(stage)})).count();
      sum.second += costs.stages[stage].memory.parameter_bytes;
    }
    return sum;
  };
  const auto whole = sums({.data = 4}), cut = sums({.pipeline = 4});
  CHECK(cut.first == doctest::Approx(whole.first));
  CHECK(cut.second == whole.second);
}

TEST_CASE("a table that two stages share is summed between them once a step, on one stage it costs nothing more") {
  Pricing pricing(preset_model("bert-base"), round_cluster(2), {.global_batch = 8, .sequence = 128});
  const auto step = [&](const Layout& layout, std::size_t stage) {
    const CostTable costs = cost_table(price_layout(pricing, layout, order_of(pricing.training(), layout)));
    return costs.stages[stage].segments[static_cast<std::size_t>(Op::kOptimizerStep)].front();
  };
  CHECK(step({.data = 2}, 0).size() == 1);
  for (const std::size_t stage : {0, 1}) {
    const std::vector<Segment> segments = step({.pipeline = 2}, stage);
    REQUIRE(segments.size() == 2);
    CHECK(segments.front().bytes == 30522 * 768 * 4);
  }
}

TEST_CASE("memory moves the cut where the even one does not fit") {
  ClusterSpec cluster = round_cluster(2);
  const auto peaks = [&] {
    Pricing pricing(preset_model("vgg-16"), cluster, images(64));
    return evaluate(pricing, {.pipeline = 2, .microbatch = 32}).simulation.peak_memory_bytes;
  };
  const std::vector<std::int64_t> free = peaks();
  const std::int64_t largest = std::max(free[0], free[1]);
  cluster.device.memory_bytes = largest / 10 * 9;
  const std::vector<std::int64_t> tight = peaks();
  CHECK(std::max(tight[0], tight[1]) < largest);
}

TEST_CASE("a split that does not give every stage its nodes is refused with both numbers") {
  Pricing pricing(preset_model("alexnet"), round_cluster(2), images(8));
  const Layout layout{.pipeline = 2, .split = {3, 4}};
  check_refused<SpecError>([&] { price_layout(pricing, layout, order_of(pricing.training(), layout)); }, "split 3,4",
                           "14 nodes");
}

TEST_CASE("a search over a graph leaves out what a graph has not, and says so where it is asked for") {
  const ModelSpec model = preset_model("alexnet");
  const SearchResult found = found_layouts(model, round_cluster(4), images(64), {}, {.keep = 3});
  REQUIRE_FALSE(found.ranked.empty());
  for (const Evaluation& ranked : found.ranked) {
    CHECK(ranked.layout.tensor == 1);
    CHECK(ranked.layout.recompute == Recompute::kNone);
    CHECK(ranked.rates.samples_per_second * step_time(ranked.simulation).count() == doctest::Approx(64));
    CHECK(ranked.rates.tokens_per_second == 0);
  }
  const auto reason = [&](const std::string& layout) {
    return found_layouts(model, round_cluster(4), images(64), parse_layout(layout)).infeasible;
  };
  CHECK(reason("tp=2").find("give tp=1") != std::string::npos);
  CHECK(reason("recompute=full").find("has none") != std::string::npos);
  CHECK(reason("recompute=selective").find("give full or none") != std::string::npos);
  CHECK(found_layouts(preset_model("vgg-16"), round_cluster(4), images(64), parse_layout("recompute=full"))
            .ranked.size() > 0);
}

TEST_CASE("every schedule of a pipeline runs a graph") {
  Pricing pricing(preset_model("resnet-50"), round_cluster(4), images(64));
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipev", "chimera", "hanayo"}) {
    CAPTURE(schedule);
    const std::string name = schedule;
    const bool chunked = name == "interleaved" || name == "zb-v" || name == "dualpipev" || name == "hanayo";
    const Layout layout{.pipeline = 4, .chunks = chunked ? 2 : 1, .microbatch = 4, .schedule = name};
    const Evaluation evaluation = evaluate(pricing, layout);
    CHECK(evaluation.simulation.makespan > SimTime{0});
    CHECK(evaluation.rates.mfu_ratio < 1);
  }
}

TEST_CASE("the samples of a network without sequences have none") {
  check_refused<SpecError>(
      [] { Pricing(preset_model("alexnet"), round_cluster(1), {.global_batch = 8, .sequence = 128}); }, "alexnet",
      "--seq");
}

}  // namespace plumb::test
