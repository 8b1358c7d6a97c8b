#include "planner/evaluate/handovers.h"

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/spec/rank_layout.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

const std::vector<RankMesh> kUnequal{{.data = 1, .tensor = 2}, {.data = 2, .tensor = 1}};

Layout on(std::vector<RankMesh> meshes, std::int64_t microbatch = 2) {
  const int pipeline = static_cast<int>(meshes.size());
  return {.pipeline = pipeline, .microbatch = microbatch, .meshes = std::move(meshes)};
}

CostTable costs_of(const Layout& layout, int devices, std::optional<ReshardingKind> kind = {}) {
  Pricing pricing(preset_model("llama-3.2-1b"), round_cluster(devices), kSmallTraining);
  const Schedule order = order_of(kSmallTraining, layout);
  PricedLayout priced = price_layout(pricing, layout, order);
  if (kind) priced = with_handovers(pricing, layout, order, std::move(priced), kind);
  return cost_table(priced);
}

std::vector<Handover> handovers_of(const Layout& layout, std::optional<ReshardingKind> kind = {}) {
  Pricing pricing(preset_model("llama-3.2-1b"), round_cluster(4), kSmallTraining);
  const Schedule order = order_of(kSmallTraining, layout);
  return with_handovers(pricing, layout, order, price_layout(pricing, layout, order), kind).handovers;
}

SimTime step_of(const Layout& layout, int devices) {
  Pricing pricing(preset_model("llama-3.2-1b"), round_cluster(devices), kSmallTraining);
  return evaluate(pricing, layout).simulation.makespan;
}

Seconds link_time(const CostTable& costs, int from, int to, std::int64_t bytes) {
  const LinkCost& link = costs.links.at({from, to});
  return link.latency + Seconds{static_cast<double>(bytes) / link.bytes_per_second};
}

}  // namespace

TEST_CASE("equal meshes take, to the picosecond, what the plain layout takes") {
  const struct {
    std::vector<RankMesh> meshes;
    Layout plain;
    int devices;
  } cases[] = {
      {{{.tensor = 2}, {.tensor = 2}}, {.tensor = 2, .pipeline = 2, .microbatch = 4}, 4},
      {{{.data = 2}, {.data = 2}}, {.data = 2, .pipeline = 2, .microbatch = 2}, 4},
      {{{.data = 2, .tensor = 2}, {.data = 2, .tensor = 2}},
       {.data = 2, .tensor = 2, .pipeline = 2, .microbatch = 2},
       8},
      {{{.data = 4}, {.data = 4}, {.data = 4}}, {.data = 4, .pipeline = 3, .microbatch = 1}, 12},
  };
  for (const auto& [meshes, plain, devices] : cases) {
    for (const int zero : {0, 1, 2}) {
      Layout written = on(meshes, 4), alike = plain;
      written.zero = alike.zero = zero;
      written.split = alike.split = plain.pipeline == 2 ? std::vector{9, 7} : std::vector{6, 6, 4};
      const CostTable one = costs_of(written, devices), other = costs_of(alike, devices);
      CHECK(step_of(written, devices) == step_of(alike, devices));
      for (std::size_t stage = 0; stage < one.stages.size(); ++stage) {
        CHECK(one.stages[stage].memory.forward_bytes == other.stages[stage].memory.forward_bytes);
        CHECK(one.stages[stage].memory.optimizer_bytes == other.stages[stage].memory.optimizer_bytes);
      }
    }
  }
}

TEST_CASE("a rank with replicas is priced as a layout of its degrees and half the sequences") {
  const CostTable unequal = costs_of(on(kUnequal), 4);
  Layout second{.data = 2, .pipeline = 2, .microbatch = 1};
  second.split = {8, 8};
  Layout first = on(kUnequal);
  first.split = {8, 8};
  const CostTable replicated = costs_of(second, 4), meshes = costs_of(first, 4);
  const Action backward{.op = Op::kBackward, .stage = 1}, reduce{.op = Op::kReduceGrad, .stage = 1};
  CHECK(duration_of(meshes, backward) == duration_of(replicated, backward));
  CHECK(duration_of(meshes, reduce) == duration_of(replicated, reduce));
  CHECK(duration_of(meshes, reduce) > SimTime{0});
  CHECK(duration_of(unequal, {.op = Op::kReduceGrad, .stage = 0}) == SimTime{0});  // no replicas
}

TEST_CASE("groups and hops sit where the devices of the ranks are") {
  // On nodes of four: the second rank's four replicas begin at device 2, so that two of them are on the next node.
  Pricing pricing(preset_model("llama-3.2-1b"), round_cluster(8), kSmallTraining);
  const Layout layout = on({{.data = 2}, {.data = 4}, {.data = 2}}, 4);
  const Pricing::Placements& placed = pricing.placements(layout);
  CHECK(placed.replicas[0].sharers == GroupPlacement{.ranks = 2, .nodes = 1, .ranks_per_node = 2});
  CHECK(placed.replicas[1].sharers == GroupPlacement{.ranks = 4, .nodes = 2, .ranks_per_node = 2});
  CHECK(pricing.hop(layout, 0, 1).bytes_per_second == 10e9);  // to devices 4 and 5
  CHECK(&pricing.placements(layout_of_rank(layout, 1)) == &placed);
}

TEST_CASE("messages between meshes last as long as their resharding, both ways") {
  for (const auto kind : {ReshardingKind::kDirect, ReshardingKind::kAllGather, ReshardingKind::kBroadcast}) {
    const CostTable costs = costs_of(on(kUnequal), 4, kind);
    const std::vector<Handover> handovers = handovers_of(on(kUnequal), kind);
    REQUIRE(handovers.size() == 2);
    for (const Handover& handover : handovers) {
      CHECK(handover.chosen.kind == kind);
      CHECK(handover.bytes == 2 * 512 * preset_model("llama-3.2-1b").hidden * 2);
      CHECK(link_time(costs, handover.source, handover.destination, handover.bytes).count() ==
            doctest::Approx(handover.chosen.time.count()).epsilon(1e-9));
    }
    CHECK(costs.stages[0].activation_message_bytes == handovers[0].bytes);
    CHECK(costs.stages[1].gradient_message_bytes == handovers[0].bytes);
  }
  const std::vector<Handover> best = handovers_of(on(kUnequal)),
                              direct = handovers_of(on(kUnequal), ReshardingKind::kDirect);
  for (std::size_t i = 0; i < 2; ++i) CHECK(best[i].chosen.time <= direct[i].chosen.time);
}

TEST_CASE("a direct resharding sends each replica its sequences over the link of one device") {
  // From two tensor ranks, which hold the tensor twice, to two replicas: each sends one half, inside a node at 100 GB/s.
  const std::vector<Handover> handovers = handovers_of(on(kUnequal), ReshardingKind::kDirect);
  const double bytes = static_cast<double>(handovers[0].bytes);
  CHECK(handovers[0].chosen.crossing_bytes == handovers[0].bytes);
  CHECK(handovers[0].chosen.time.count() == doctest::Approx(1e-6 + bytes / 2 / 100e9).epsilon(1e-12));
}

TEST_CASE("one micro-batch passes the stages forwards and back, and each rank then ends its own step") {
  const TrainingSpec one{.global_batch = 2, .sequence = 512};
  Pricing pricing(small_gpt(), round_cluster(4), one);
  Layout layout = on(kUnequal);
  layout.split = {5, 3};
  const CostTable costs = cost_table(price_layout(pricing, layout, order_of(one, layout)));
  const auto lasts = [&](Op op, std::int32_t stage) { return duration_of(costs, {.op = op, .stage = stage}); };
  const auto hop = [&](int from, int to) {
    const LinkCost& link = costs.links.at({from, to});
    const auto bytes = static_cast<double>(2 * 512 * small_gpt().hidden * 2);
    return to_sim_time(Seconds{bytes / link.bytes_per_second}) + to_sim_time(link.latency);
  };
  const SimTime last_backward = lasts(Op::kForward, 0) + hop(0, 1) + lasts(Op::kForward, 1) + lasts(Op::kBackward, 1);
  const SimTime second = last_backward + lasts(Op::kReduceGrad, 1) + lasts(Op::kOptimizerStep, 1);
  const SimTime first = last_backward + hop(1, 0) + lasts(Op::kBackward, 0) + lasts(Op::kOptimizerStep, 0);
  const Evaluation evaluation = evaluate(pricing, layout);
  CHECK(evaluation.simulation.makespan == std::max(first, second));
  // Two devices hold half of each matrix of five layers, or all of those of three layers.
  const std::vector<std::int64_t>& peaks = evaluation.simulation.peak_memory_bytes;
  CHECK(peaks[0] < peaks[1] * 6 / 5);
  CHECK(costs.stages[1].memory.parameter_bytes > costs.stages[0].memory.parameter_bytes);
}

TEST_CASE("the nodes of a graph are divided by samples, and what crosses is the cut of the whole micro-batch") {
  const TrainingSpec training{.global_batch = 64, .sequence = 1};
  Pricing pricing(preset_model("alexnet"), round_cluster(4), training);
  const Layout unequal = [&] {
    Layout of = on({{.data = 2}, {.data = 1}, {.data = 1}}, 4);
    of.split = {4, 4, static_cast<int>(pricing.graph()->nodes.size()) - 8};
    return of;
  }();
  const PricedLayout priced = price_layout(pricing, unequal, order_of(training, unequal));
  REQUIRE(priced.handovers.size() == 2);
  CHECK(priced.handovers[0].bytes == pricing.graph()->cuts[4].elements * 4 * 2);
  Layout halved = layout_of(parse_layout("dp=2,pp=3,mbs=2"));
  halved.split = unequal.split;
  const CostTable own = cost_table(priced),
                  plain = cost_table(price_layout(pricing, halved, order_of(training, halved)));
  CHECK(duration_of(own, {.op = Op::kForward, .stage = 0}) == duration_of(plain, {.op = Op::kForward, .stage = 0}));
  CHECK(own.stages[1].activation_message_bytes == pricing.graph()->cuts[8].elements * 4 * 2);
}

}  // namespace plumb::test
