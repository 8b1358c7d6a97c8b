#include "planner/partition/replicated_partition.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "tests/planner/partition/graphs.h"

namespace plumb::test {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

std::optional<StagePartition> cut(const ProfiledGraph& graph, const ReplicatedLimits& limits) {
  return replicated_partition(graph, downsets_of(graph, topological_order(graph, "graph"), 20'000, 1'000), limits);
}

/// Tries every partition of a graph for one or two levels of machines, one copy of the pipeline at a time.
class BruteForce {
 public:
  BruteForce(const ProfiledGraph& graph, const ReplicatedLimits& limits, int copies)
      : graph_(graph), limits_(limits), copies_(copies) {
    inner_ = limits.levels.size() > 1 ? limits.levels[0].count : 1;
    devices_ = device_count(limits.levels) / copies;
    const std::size_t nodes = num_vertices(graph);
    for (unsigned long mask = 0; mask < (1UL << nodes); ++mask)
      if (const NodeSet set(nodes, mask); closed(set)) downsets_.push_back(set);
  }

  double best() const { return best_to(NodeSet(num_vertices(graph_)).set(), 0, 0); }

 private:
  double rate(bool far) const { return (far ? limits_.levels.back() : limits_.levels.front()).bytes_per_second; }

  /// Returns the fastest slowest stage for the nodes of `whole`, in front of stages that took so much.
  double best_to(const NodeSet& whole, int taken, int replicas_behind) const {
    if (whole.none()) return 0;
    double best = kUnbounded;
    for (const NodeSet& part : downsets_) {
      if (!part.is_proper_subset_of(whole)) continue;
      for (int replicas = 1; replicas <= (limits_.straight ? 1 : devices_ - taken); ++replicas) {
        int start = taken;
        if (replicas > inner_ && replicas % inner_ != 0) continue;
        if (replicas > inner_ || start / inner_ != (start + replicas - 1) / inner_)
          start = (start + inner_ - 1) / inner_ * inner_;
        const int end = start + replicas, all = replicas_behind + replicas;
        if (end > devices_ || !fits(whole - part, (all + replicas - 1) / replicas)) continue;
        double seconds = stage_seconds(whole - part, replicas);
        if (limits_.transfers && taken > 0) {
          const bool far = limits_.levels.size() == 1 || (taken - 1) / inner_ != (end - 1) / inner_;
          seconds = std::max(seconds, 2 * bytes_out(graph_, whole) / (rate(far) * replicas * copies_));
        }
        if (limits_.transfers) {
          const bool far = limits_.levels.size() == 1 || end % inner_ == 0;
          seconds = std::max(seconds, 2 * bytes_out(graph_, part) / (rate(far) * replicas * copies_));
        }
        if (seconds < best) best = std::min(best, std::max(seconds, best_to(part, end, all)));
      }
    }
    return best;
  }

  bool closed(const NodeSet& set) const {
    for (const auto edge : boost::make_iterator_range(edges(graph_)))
      if (set.test(target(edge, graph_)) && !set.test(source(edge, graph_))) return false;
    return true;
  }

  double sum(const NodeSet& nodes, double NodeWay::*of) const {
    double all = 0;
    for (auto node = nodes.find_first(); node != NodeSet::npos; node = nodes.find_next(node))
      all += graph_[node].ways.front().*of;
    return all;
  }

  bool fits(const NodeSet& nodes, int held) const {
    return sum(nodes, &NodeWay::state_bytes) + held * sum(nodes, &NodeWay::in_flight_bytes) <= limits_.bytes;
  }

  double stage_seconds(const NodeSet& nodes, int replicas) const {
    const double weights = sum(nodes, &NodeWay::weight_bytes);
    double seconds = 0;
    for (auto node = nodes.find_first(); node != NodeSet::npos; node = nodes.find_next(node))
      seconds += graph_[node].ways.front().seconds.count();
    const int near = limits_.levels.size() > 1 ? std::min(replicas, inner_) : 1, far = replicas / near;
    seconds = (seconds + 4 * (near - 1) * weights / (rate(false) * near)) / near;
    seconds = (seconds + 4 * (far - 1) * weights / (rate(true) * far * near)) / far;
    return (seconds + 4 * (copies_ - 1) * weights / (rate(true) * copies_ * replicas)) / copies_;
  }

  const ProfiledGraph& graph_;
  const ReplicatedLimits& limits_;
  int copies_, inner_ = 1, devices_ = 1;
  std::vector<NodeSet> downsets_;
};

/// Returns a whole number below `end` as a cost.
double number_below(std::mt19937& random, unsigned end) {
  return static_cast<double>(random() % end);
}

}  // namespace

TEST_CASE("alike nodes and free links: as many devices, as many times as fast") {
  CHECK(cut(chain_graph({1, 1, 1, 1, 1, 1}), {.levels = {{3, kUnbounded}}})->slowest.count() == doctest::Approx(2));
  CHECK(cut(chain_graph({3, 1}), {.levels = {{4, kUnbounded}}})->slowest.count() == doctest::Approx(1));
}

TEST_CASE("weights that are reduced slowly are put on one device, light and slow nodes on several") {
  ProfiledGraph graph = chain_graph({8, 2});
  graph[1].ways.front().weight_bytes = 1e9;
  const auto partition = cut(graph, {.levels = {{5, 1e9}}});
  REQUIRE(partition->stages.size() == 2);
  CHECK(partition->stages[0].replicas == 4);
  CHECK(partition->stages[1].replicas == 1);
  CHECK(partition->slowest.count() == doctest::Approx(2));
}

TEST_CASE("a transfer that lasts longer than every stage counts, unless it is left out") {
  ProfiledGraph graph = chain_graph({2, 2});
  graph[0].output_bytes = 10;
  // Whole on one device takes 4 s; cut in two, the transfer takes 20 s.
  CHECK(cut(graph, {.levels = {{2, 1}}, .straight = true})->slowest.count() == doctest::Approx(4));
  CHECK(cut(graph, {.levels = {{2, 1}}, .transfers = false, .straight = true})->slowest.count() == doctest::Approx(2));
}

TEST_CASE("memory forbids what does not fit, and a device that holds not one node cannot be used") {
  ProfiledGraph graph = chain_graph({1, 1});
  for (const int node : {0, 1}) graph[node].ways.front().state_bytes = 5;
  CHECK(cut(graph, {.levels = {{2, kUnbounded}}, .bytes = 10})->slowest.count() == doctest::Approx(1));
  CHECK(cut(graph, {.levels = {{2, kUnbounded}}, .bytes = 5})->stages.size() == 2);
  CHECK_FALSE(cut(graph, {.levels = {{2, kUnbounded}}, .bytes = 4}));
}

TEST_CASE("on 200 random graphs of up to 14 nodes no partition that exists is faster") {
  std::mt19937 random(11);
  int compared = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const ProfiledGraph graph = random_graph(random, trial % 2 == 0 ? 14 : 8);
    ReplicatedLimits limits{.transfers = random() % 2 == 0, .straight = random() % 6 == 0};
    if (trial % 2 == 0)
      limits.levels = {{static_cast<int>(1 + random() % 3), 1 + number_below(random, 6)}};
    else
      limits.levels = {{2, 4 + number_below(random, 6)}, {2, 1 + number_below(random, 3)}};
    if (random() % 3 == 0) limits.bytes = 20 + number_below(random, 60);
    CAPTURE(trial);
    double expected = kUnbounded;
    const int outermost = limits.levels.back().count;
    for (int copies = 1; copies <= (limits.straight ? 1 : outermost); ++copies)
      if (outermost % copies == 0) expected = std::min(expected, BruteForce(graph, limits, copies).best());
    const auto partition = cut(graph, limits);
    REQUIRE(partition.has_value() == (expected < kUnbounded));
    if (!partition) continue;
    ++compared;
    CHECK(partition->slowest.count() == doctest::Approx(expected).epsilon(1e-11));
  }
  CHECK(compared > 100);
}

}  // namespace plumb::test
