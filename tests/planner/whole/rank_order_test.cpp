// Layouts whose replicas lie apart: the same ranks on other devices.

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/price/pricing.h"
#include "planner/search/bounds.h"
#include "planner/search/layout_conflict.h"
#include "planner/search/layout_tree.h"
#include "planner/search/search.h"
#include "planner/spec/cluster_sites.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

const TrainingSpec kFrameworkStep{.global_batch = 16, .sequence = 256, .stack = StackSpec{.name = "any"}};

Evaluation simulated_on_links(Pricing& pricing, const Layout& layout) {
  return evaluate(pricing, layout, {.network = NetworkOptions{}});
}

}  // namespace

TEST_CASE("with replicas apart, messages stay within a node and gradients cross the network") {
  const ModelSpec model = small_gpt();
  const ClusterSpec cluster = round_cluster(8);  // four devices a node
  Pricing pricing(model, cluster, kFrameworkStep);
  Layout layout = layout_of(parse_layout("dp=4,pp=2,zero=1,mbs=1"));
  CHECK(pricing.hop(layout, 0, 1).bytes_per_second == cluster.network->bytes_per_second);
  CHECK(pricing.placements(layout).replicas[0].sharers == GroupPlacement{4, 1, 4});
  layout.order = RankOrder::kReplicasApart;
  CHECK(pricing.hop(layout, 0, 1).bytes_per_second == cluster.node_link->bytes_per_second);
  CHECK(pricing.placements(layout).replicas[0].sharers == GroupPlacement{4, 2, 2});
}

TEST_CASE("on a network as fast as a node messages cost the same in both orders, and no ring costs less apart") {
  const ModelSpec model = small_gpt();
  ClusterSpec cluster = round_cluster(8);
  cluster.network = cluster.node_link;
  Pricing pricing(model, cluster, kFrameworkStep);
  for (const char* text : {"dp=4,pp=2,zero=0,mbs=1", "dp=2,tp=2,pp=2,zero=0,mbs=2", "dp=2,pp=4,zero=0,mbs=1"}) {
    Layout layout = layout_of(parse_layout(text));
    const SimTime usual = evaluate(pricing, layout).simulation.makespan;
    layout.order = RankOrder::kReplicasApart;
    CAPTURE(text);
    // Rings over several nodes are priced by their slowest link and more latency, so that only messages are the same.
    CHECK(evaluate(pricing, layout).simulation.makespan >= usual);
    CHECK(pricing.hop(layout, 0, 1).bytes_per_second ==
          pricing.hop(layout_of(parse_layout(text)), 0, 1).bytes_per_second);
  }
}

TEST_CASE("an order is open where it gives groups or hops other links") {
  const auto orders = [](const char* text, const ClusterSpec& cluster, const TrainingSpec& training) {
    const ModelSpec model = small_gpt();
    Pricing pricing(model, cluster, training);
    const LayoutSpace space(parse_layout(text));
    std::set<RankOrder> found;
    for (const Layout& layout : enumerate_layouts(pricing, space).layouts) found.insert(layout.order);
    return found.size();
  };
  const ClusterSpec two_nodes = round_cluster(8), one_node = round_cluster(4);
  CHECK(orders("tp=2,pp=2", two_nodes, kFrameworkStep) == 2);
  CHECK(orders("dp=2,tp=2,pp=2", two_nodes, kFrameworkStep) == 1);  // the framework's own is meant
  CHECK(orders("tp=4,pp=1", two_nodes, kFrameworkStep) == 1);
  CHECK(orders("tp=1,pp=2", one_node, kFrameworkStep) == 1);  // one switch joins them
  const ClusterSpec four_nodes = round_cluster(16);
  CHECK(orders("tp=4,pp=2", four_nodes, kFrameworkStep) == 1);  // each tensor group fills a node
  ClusterSpec leaves = four_nodes;
  leaves.wiring.nodes_per_leaf = 2;
  CHECK(orders("tp=4,pp=2", leaves, kFrameworkStep) == 2);
  TrainingSpec cannot = kFrameworkStep;
  cannot.stack->can.replicas_apart = false;
  CHECK(orders("tp=2,pp=2", two_nodes, cannot) == 1);
}

TEST_CASE("a search over both orders finds what simulating every layout finds, on small spaces") {
  std::mt19937 random(29);
  for (int space_number = 0; space_number < 12; ++space_number) {
    ModelSpec model = small_gpt();
    ClusterSpec cluster = round_cluster(8);
    cluster.network->bytes_per_second = space_number % 2 == 0 ? 1e9 : 10e9;
    TrainingSpec training = kFrameworkStep;
    training.global_batch = 8 + 8 * static_cast<int>(random() % 2);
    Pricing pricing(model, cluster, training);
    const std::vector<const char*> pins = {"zero=0,recompute=none", "zero=1,schedule=1f1b", "mbs=1,zero=1,sp=0"};
    const LayoutSpace space(parse_layout(pins[random() % pins.size()]));
    SimTime best = SimTime::max();
    int apart = 0;
    for (const Layout& layout : enumerate_layouts(pricing, space).layouts) {
      apart += layout.order == RankOrder::kReplicasApart ? 1 : 0;
      const Evaluation evaluation = simulated_on_links(pricing, layout);
      if (!memory_shortfall(evaluation.simulation.peak_memory_bytes, cluster.device, pricing.memory_headroom(layout)))
        best = std::min(best, evaluation.simulation.makespan);
    }
    CHECK(apart > 0);
    const SearchResult found = search_layouts(pricing, space, {.keep = 1});
    REQUIRE(!found.ranked.empty());
    CHECK(found.ranked.front().simulation.makespan == best);
  }
}

TEST_CASE("where messages bind, the stages of a replica lie side by side, and where gradients bind, those of a stage") {
  const ModelSpec model = small_gpt();
  ClusterSpec cluster = round_cluster(8);
  cluster.network->bytes_per_second = 0.5e9;
  const auto best_order = [&](std::int64_t batch) {
    TrainingSpec training = kFrameworkStep;
    training.global_batch = batch;
    Pricing pricing(model, cluster, training);
    const LayoutSpace space(parse_layout("tp=1,pp=2,v=4,zero=0,mbs=1,schedule=interleaved"));
    return search_layouts(pricing, space, {.keep = 1}).ranked.front().layout.order;
  };
  CHECK(best_order(4096) == RankOrder::kReplicasApart);  // many messages, and gradients once
  CHECK(best_order(8) == RankOrder::kStagesApart);
}

TEST_CASE("an order that changes nothing, or tears experts apart, is refused in a sentence") {
  const auto conflict = [](const char* text, const TrainingSpec& training) {
    ModelSpec model = small_gpt();
    model.experts = 8;
    model.experts_per_token = 2;
    return layout_conflict(model, training, round_cluster(8), layout_of(parse_layout(text))).value_or("");
  };
  CHECK(conflict("dp=8,order=tp-cp-pp-dp", kFrameworkStep).find("there is one of them") != std::string::npos);
  CHECK(conflict("dp=4,pp=2,ep=4,order=tp-cp-pp-dp", kFrameworkStep).find("spreads experts") != std::string::npos);
  CHECK(conflict("dp=4,pp=2,ep=4", kFrameworkStep).empty());
  CHECK(conflict("dp=2,tp=2,pp=2,ep=2,etp=1,sp=1,order=tp-cp-pp-dp", kFrameworkStep).empty());
  const ClusterSpec sites = joined_sites({round_cluster(8), round_cluster(8)}, round_cluster(8).network);
  CHECK(layout_conflict(small_gpt(), kFrameworkStep, sites, layout_of(parse_layout("dp=8,pp=2,order=tp-cp-pp-dp")))
            .value_or("")
            .find("stages lie on sites") != std::string::npos);
  TrainingSpec own = kFrameworkStep;
  own.stack.reset();
  CHECK(conflict("dp=4,pp=2,order=tp-cp-pp-dp", own).find("leaves to its launcher") != std::string::npos);
}

}  // namespace plumb::test
