#include "planner/exchange/chakra/chakra_nodes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <doctest/doctest.h>

#include "planner/search/evaluate_plan.h"
#include "schedules/error.h"
#include "tests/planner/round_plan.h"

namespace plumb::test {
namespace {

struct AllNodes {
  Evaluation evaluation;
  std::vector<std::vector<ChakraNode>> ranks;  ///< [world rank]
};

AllNodes nodes_of(const Layout& layout) {
  const Plan plan = round_plan(layout, world_size(grid_of(layout)));
  AllNodes all{.evaluation = evaluate(plan, {}, {.share_links = false})};
  REQUIRE(all.evaluation.exists);
  const ChakraGroups groups = chakra_groups(layout);
  for (int rank = 0; rank < world_size(grid_of(layout)); ++rank)
    all.ranks.push_back(chakra_nodes(all.evaluation, groups, rank));
  return all;
}

/// Replays the nodes: a node starts once all before it have ended, and a message arrives when both ends have started
/// and its link's time has passed. A sender's messages to one receiver follow each other. Returns the end of the last.
double replayed_seconds(const AllNodes& all) {
  std::map<std::tuple<int, int, int>, double> sent;   // by source, destination and tag: the arrival
  std::map<std::tuple<int, int, bool>, double> free;  // by source, destination and direction: when the link is
  std::vector<std::vector<std::optional<double>>> ends;
  for (const auto& nodes : all.ranks) ends.emplace_back(nodes.size());
  const ProcessGrid grid = grid_of(all.evaluation.layout);
  double last = 0;
  std::size_t left = 0;
  for (bool moves = true; moves;) {
    moves = false, left = 0;
    for (std::size_t rank = 0; rank < all.ranks.size(); ++rank) {
      for (const ChakraNode& node : all.ranks[rank]) {
        if (ends[rank][node.id]) continue;
        ++left;
        const auto ended = [&](std::uint64_t before) { return ends[rank][before].has_value(); };
        if (!std::ranges::all_of(node.after, ended)) continue;
        double start = 0;
        for (const std::uint64_t before : node.after) start = std::max(start, *ends[rank][before]);
        const std::tuple message{node.source, node.destination, node.tag};
        if (node.kind == ChakraNode::Kind::kSend) {
          const LinkCost& link = link_between(all.evaluation.costs, coordinates_of(grid, node.source).pipeline,
                                              coordinates_of(grid, node.destination).pipeline);
          double& from = free[{node.source, node.destination, node.tag % 2 == 1}];
          from = std::max(from, start) + static_cast<double>(node.bytes) / link.bytes_per_second;
          sent[message] = from + link.latency.count();
        } else if (node.kind == ChakraNode::Kind::kReceive) {
          if (!sent.contains(message)) continue;
          start = std::max(start, sent[message]);
        }
        ends[rank][node.id] = start + node.predicted.count();
        last = std::max(last, *ends[rank][node.id]);
        moves = true;
      }
    }
  }
  CHECK(left == 0);
  return last;
}

}  // namespace

TEST_CASE("a replay of the nodes lasts as long as the simulated step") {
  for (const Layout& layout :
       {Layout{.pipeline = 4, .schedule = "gpipe"}, Layout{.tensor = 2, .pipeline = 4},
        Layout{.tensor = 2, .pipeline = 2, .chunks = 2, .schedule = "interleaved"},
        Layout{.data = 2, .pipeline = 2, .zero = 2}, Layout{.pipeline = 2, .chunks = 2, .schedule = "zb-v"}}) {
    CAPTURE(to_text(layout));
    const AllNodes all = nodes_of(layout);
    CHECK(replayed_seconds(all) == doctest::Approx(step_time(all.evaluation.simulation).count()).epsilon(1e-6));
  }
}

TEST_CASE("each message has one end on each of two devices, and one tag between them") {
  const AllNodes all = nodes_of({.data = 2, .tensor = 2, .pipeline = 2, .chunks = 2, .schedule = "interleaved"});
  std::set<std::tuple<int, int, int>> sends, receives;
  for (int rank = 0; rank < 8; ++rank) {
    for (const ChakraNode& node : all.ranks[static_cast<std::size_t>(rank)]) {
      const std::tuple message{node.source, node.destination, node.tag};
      if (node.kind == ChakraNode::Kind::kSend) {
        CHECK(node.source == rank);
        CHECK(sends.insert(message).second);
      } else if (node.kind == ChakraNode::Kind::kReceive) {
        CHECK(node.destination == rank);
        CHECK(receives.insert(message).second);
      }
    }
  }
  CHECK(!sends.empty());
  CHECK(sends == receives);
}

TEST_CASE("all members of a group have its collectives in one order") {
  const Layout layout{.data = 2, .tensor = 2, .pipeline = 2, .zero = 1};
  const AllNodes all = nodes_of(layout);
  const ChakraGroups groups = chakra_groups(layout);
  std::map<int, std::map<int, std::vector<std::pair<CollectiveKind, std::int64_t>>>> by_group;
  for (int rank = 0; rank < 8; ++rank) {
    for (const ChakraNode& node : all.ranks[static_cast<std::size_t>(rank)]) {
      if (node.kind != ChakraNode::Kind::kCollective) continue;
      const std::vector<int>& members = groups[static_cast<std::size_t>(node.group)];
      CHECK(std::ranges::find(members, rank) != members.end());
      by_group[node.group][rank].emplace_back(node.collective, node.bytes);
    }
  }
  CHECK(by_group.size() >= 6);  // tensor and data groups of both stages
  for (const auto& [group, ranks] : by_group) {
    CHECK(ranks.size() == groups[static_cast<std::size_t>(group)].size());
    for (const auto& [rank, calls] : ranks) CHECK(calls == ranks.begin()->second);
  }
}

TEST_CASE("groups and messages are of devices, in either order of the ranks") {
  Layout layout = layout_of(parse_layout("dp=2,pp=2"));
  const auto has = [&](const std::vector<int>& group) {
    const ChakraGroups groups = chakra_groups(layout);
    return std::ranges::find(groups, group) != groups.end();
  };
  CHECK((has({0, 1}) && has({2, 3})));  // replicas of a stage
  layout.order = RankOrder::kReplicasApart;
  CHECK((has({0, 2}) && has({1, 3}) && has({0, 1}) && has({2, 3})));  // those, and a replica's stages
  Plan plan = round_plan(layout, 4);
  plan.training.stack = StackSpec{.name = "any"};
  const Evaluation evaluation = evaluate(plan, {}, {.share_links = false});
  REQUIRE(evaluation.exists);
  const ChakraGroups groups = chakra_groups(layout);
  int messages = 0;
  for (int device = 0; device < 4; ++device) {
    for (const ChakraNode& node : chakra_nodes(evaluation, groups, device)) {
      messages += node.kind == ChakraNode::Kind::kSend || node.kind == ChakraNode::Kind::kReceive ? 1 : 0;
      if (node.kind == ChakraNode::Kind::kSend)
        CHECK(std::pair(node.source, node.destination) == std::pair(device, device ^ 1));
      if (node.kind == ChakraNode::Kind::kReceive) CHECK(node.destination == device);
    }
  }
  CHECK(messages > 0);
}

}  // namespace plumb::test
