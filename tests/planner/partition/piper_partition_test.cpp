#include "planner/partition/piper_partition.h"

#include <limits>

#include <doctest/doctest.h>

#include "planner/partition/piper_input.h"
#include "tests/planner/partition/graphs.h"
#include "tests/shared_folder.h"

namespace plumb::test {
namespace {

constexpr double kNoStages = std::numeric_limits<double>::infinity();

std::optional<StagePartition> cut(const ProfiledGraph& graph, const PiperLimits& limits) {
  return piper_partition(graph, downsets_of(graph, topological_order(graph, "graph"), 20'000, 1'000), limits);
}

/// Tries every partition of a graph whose nodes have one way for each of one and two tensor-parallel devices.
class EveryPiperPartition {
 public:
  EveryPiperPartition(const ProfiledGraph& graph, const PiperLimits& limits) : graph_(graph), limits_(limits) {
    downsets_ = downsets_of(graph, topological_order(graph, "graph"), 20'000, 1'000).sets;
  }

  double best() const { return best_to(downsets_.back(), 0, 0); }

 private:
  double best_to(const NodeSet& whole, int taken, int replicas_behind) const {
    if (whole.none()) return 0;
    double best = kNoStages;
    for (const NodeSet& part : downsets_) {
      if (!part.is_proper_subset_of(whole)) continue;
      for (std::size_t way = 0; way < 2; ++way) {
        const int tensor = way == 0 ? 1 : 2;
        for (int replicas = 1; taken + replicas * tensor <= limits_.devices; ++replicas) {
          const int all = replicas_behind + replicas;
          if (limits_.microbatches % replicas != 0 || all > limits_.microbatches) continue;
          const double seconds = stage_seconds(whole - part, way, replicas, (all + replicas - 1) / replicas);
          if (seconds < best) best = std::min(best, std::max(seconds, best_to(part, taken + replicas * tensor, all)));
        }
      }
    }
    return best;
  }

  double stage_seconds(const NodeSet& nodes, std::size_t way, int replicas, int held) const {
    double seconds = 0, bytes = 0, kept = 0;
    for (auto node = nodes.find_first(); node != NodeSet::npos; node = nodes.find_next(node)) {
      const NodeWay& of = graph_[node].ways[way];
      seconds += of.seconds.count() / replicas;
      bytes += 4 * (replicas - 1) * of.weight_bytes / replicas / static_cast<double>(limits_.microbatches);
      kept += held * of.in_flight_bytes + of.state_bytes;
    }
    for (const auto edge : boost::make_iterator_range(edges(graph_))) {
      const bool from = nodes.test(source(edge, graph_)), to = nodes.test(target(edge, graph_));
      if (from == to) continue;
      bytes +=
          2 * (graph_[edge].bytes + (from ? graph_[edge].source_bytes : graph_[edge].target_bytes)[way]) / replicas;
    }
    return kept <= limits_.bytes ? seconds + bytes / limits_.bytes_per_second : kNoStages;
  }

  const ProfiledGraph& graph_;
  const PiperLimits& limits_;
  std::vector<NodeSet> downsets_;
};

}  // namespace

TEST_CASE("a node is rebuilt where its stage does not fit otherwise") {
  ProfiledGraph graph = chain_graph({4, 4});
  for (const int node : {0, 1}) {
    graph[node].ways.front().in_flight_bytes = 10;
    graph[node].ways.push_back({.tensor = 1, .name = "rebuilt", .seconds = Seconds{5}, .in_flight_bytes = 1});
  }
  graph[1].name = "cheap";
  graph[1].ways.back().seconds = Seconds{4.5};
  // One device: both nodes keep 20 bytes, one of them 11; the second loses less time.
  const auto partition = cut(graph, {.devices = 1, .bytes = 12, .bytes_per_second = 1, .microbatches = 4});
  REQUIRE(partition);
  CHECK(partition->slowest.count() == doctest::Approx(8.5));
  CHECK(partition->stages.front().rebuilt == std::vector<std::string>{"cheap"});
  CHECK_FALSE(cut(graph, {.devices = 1, .bytes = 1, .bytes_per_second = 1, .microbatches = 4}));
}

TEST_CASE("on 200 random graphs no stages of any width are faster") {
  std::mt19937 random(5);
  const auto below = [&](unsigned end) { return static_cast<double>(random() % end); };
  int compared = 0;
  for (int trial = 0; trial < 200; ++trial) {
    ProfiledGraph graph = random_graph(random, trial % 2 == 0 ? 14 : 8);
    for (const auto node : boost::make_iterator_range(vertices(graph))) {
      NodeWay wide = graph[node].ways.front();
      wide.tensor = 2;
      wide.seconds *= 0.5 + below(4) / 8;
      wide.state_bytes /= 2;
      graph[node].ways.push_back(wide);
    }
    for (const auto edge : boost::make_iterator_range(edges(graph))) {
      graph[edge].source_bytes = {0, below(4)};
      graph[edge].target_bytes = {0, below(4)};
    }
    const PiperLimits limits{.devices = trial % 2 == 0 ? 3 : 5,
                             .bytes = random() % 2 == 0 ? 20 + below(60) : 1e9,
                             .bytes_per_second = 1 + below(9),
                             .microbatches = static_cast<std::int64_t>(2 + random() % 5)};
    CAPTURE(trial);
    const double expected = EveryPiperPartition(graph, limits).best();
    const auto partition = cut(graph, limits);
    REQUIRE(partition.has_value() == (expected < kNoStages));
    if (!partition) continue;
    ++compared;
    CHECK(partition->slowest.count() == doctest::Approx(expected).epsilon(1e-11));
  }
  CHECK(compared > 100);
}

TEST_SUITE("oracle") {
  TEST_CASE("BERT-32's stages take the times that Piper found") {
    const std::optional<std::string> text = shared_text("oracles/piper/bert32a100.json");
    if (!text) return;
    const PiperInput input = parse_piper_input(*text, "bert32a100.json");
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    for (const auto& [devices, seconds] : {std::pair{8, .16585575}, std::pair{32, .0415154504},
                                           std::pair{64, .0202005503}, std::pair{128, .0101208803}}) {
      CAPTURE(devices);
      const auto partition = cut(
          input.graph,
          {.devices = devices, .bytes = 8 * kGiB, .bytes_per_second = 25 * kGiB, .microbatches = input.microbatches});
      REQUIRE(partition);
      CHECK(partition->slowest.count() == doctest::Approx(seconds).epsilon(1e-6));
    }
  }
}

}  // namespace plumb::test
