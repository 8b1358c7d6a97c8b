#include "planner/partition/piper_partition.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "planner/partition/stage_search.h"

namespace plumb { inline namespace planner {
namespace {

constexpr double kNoFit = std::numeric_limits<double>::infinity();
constexpr double kSumError = 1e-12;

class PiperSpace final : public StageSpace {
 public:
  PiperSpace(const ProfiledGraph& graph, const Downsets& downsets, const PiperLimits& limits)
      : graph_(graph), downsets_(downsets), limits_(limits) {
    for (int replicas = 1; replicas <= std::min<std::int64_t>(limits.devices, limits.microbatches); ++replicas)
      if (limits.microbatches % replicas == 0) replica_counts_.push_back(replicas);
    for (const NodeSet& set : downsets.sets) {
      work_.push_back(device_seconds(set));
      crossed_.push_back(crossed_edges(set));
    }
    for (std::size_t node = 0; node < num_vertices(graph); ++node)
      for (const NodeWay& way : graph[node].ways) degrees_[way.tensor];
    for (auto& [tensor, degree] : degrees_) {
      degree.tensor = tensor;
      for (const auto edge : boost::make_iterator_range(edges(graph))) {
        degree.bytes_in.push_back(graph[edge].bytes + exchanged(target(edge, graph), graph[edge].target_bytes, tensor));
        degree.bytes_out.push_back(graph[edge].bytes +
                                   exchanged(source(edge, graph), graph[edge].source_bytes, tensor));
      }
      for (std::size_t set = 0; set < downsets.sets.size(); ++set) {
        degree.sums.push_back(least_of(downsets.sets[set], tensor));
        degree.in.push_back(sum_over(crossed_[set], degree.bytes_in));
        degree.out.push_back(sum_over(crossed_[set], degree.bytes_out));
      }
    }
  }

  double least_work(int downset) const override { return work_[downset]; }

  bool covers(const Taken& a, const Taken& b) const override {
    return a.devices <= b.devices && a.replicas <= b.replicas;
  }

  std::optional<Taken> least_taken(int part, int whole, const Taken& behind, double limit) const override {
    const double devices = std::ceil((work_[whole] - work_[part]) / limit * (1 - kSumError));
    const int least = std::max(1, static_cast<int>(std::min<double>(devices, limits_.devices + 1)));
    const int most_tensor = degrees_.rbegin()->first;
    return Taken{.devices = behind.devices + least,
                 .replicas = behind.replicas + (least + most_tensor - 1) / most_tensor};
  }

  void add_ways(int part, int whole, const Taken& behind, double limit, const Known& known,
                std::vector<StageWay>& ways) const override {
    for (const auto& [tensor, degree] : degrees_) {
      const Least least = degree.sums[whole] - degree.sums[part];
      if (least.without > 0) continue;
      const auto at_least = std::ranges::lower_bound(replica_counts_, least.seconds / limit * (1 - kSumError));
      const auto taken = [&behind, width = tensor](int replicas) {
        return Taken{.devices = behind.devices + replicas * width, .replicas = behind.replicas + replicas};
      };
      if (at_least == replica_counts_.end() || known.covers(taken(*at_least))) continue;
      const double alone = least.seconds + 2 * bytes_across(degree, part, whole) / limits_.bytes_per_second;
      for (auto replicas = at_least; replicas != replica_counts_.end(); ++replicas) {
        const Taken after = taken(*replicas);
        if (after.devices > limits_.devices || after.replicas > limits_.microbatches) break;
        const int in_flight = (after.replicas + *replicas - 1) / *replicas;
        if (in_flight * least.in_flight + least.state > limits_.bytes) continue;
        const double fastest = alone / *replicas + resync(least.weights, *replicas);
        if (fastest * (1 - kSumError) > limit) continue;
        if (known.covers(after)) break;
        const double seconds = fastest + slowdown(degree, part, whole, in_flight, nullptr) / *replicas;
        if (seconds > limit) continue;
        ways.push_back({.after = after, .replicas = *replicas, .tensor = tensor, .seconds = seconds});
        break;  // more replicas take more of both
      }
    }
  }

  /// Returns the nodes of a stage that do not take their fastest way.
  std::vector<int> rebuilt(int part, int whole, const StageWay& way) const {
    std::vector<int> nodes;
    const int in_flight = (way.after.replicas + way.replicas - 1) / way.replicas;
    slowdown(degrees_.at(way.tensor), part, whole, in_flight, &nodes);
    return nodes;
  }

 private:
  /// The least that the nodes of a set take in the ways of one tensor-parallel degree.
  struct Least {
    double seconds = 0, in_flight = 0, state = 0, weights = 0;
    double fast_in_flight = 0, fast_state = 0;  ///< of the fastest ways
    int without = 0;                            ///< nodes that have no way of this degree

    Least operator-(const Least& other) const {
      return {seconds - other.seconds, in_flight - other.in_flight,           state - other.state,
              weights - other.weights, fast_in_flight - other.fast_in_flight, fast_state - other.fast_state,
              without - other.without};
    }
  };

  using EdgeSet = boost::dynamic_bitset<std::uint64_t>;

  /// A node's change from its fastest way to the one that keeps less.
  struct Change {
    double seconds_by_byte = 0;
    std::size_t node = 0;
    double seconds = 0, bytes = 0;
  };

  struct Degree {
    int tensor = 1;
    std::vector<double> bytes_in, bytes_out;  ///< [edge] that its target's stage receives, its source's stage sends
    std::vector<Least> sums;                  ///< [downset]
    std::vector<double> in, out;              ///< [downset] of all edges that leave it
    mutable std::unordered_map<int, std::vector<Change>> changes;  ///< [micro-batches in flight] best first
  };

  /// Returns the node's fastest way of a degree, the first of equal ones; null if it has none.
  const NodeWay* fastest_way(std::size_t node, int tensor) const {
    const NodeWay* fastest = nullptr;
    for (const NodeWay& way : graph_[node].ways)
      if (way.tensor == tensor && (fastest == nullptr || way.seconds < fastest->seconds)) fastest = &way;
    return fastest;
  }

  Least least_of(const NodeSet& set, int tensor) const {
    Least least;
    for (auto node = set.find_first(); node != NodeSet::npos; node = set.find_next(node)) {
      const NodeWay* fastest = fastest_way(node, tensor);
      if (fastest == nullptr) {
        ++least.without;
        continue;
      }
      double in_flight = fastest->in_flight_bytes, state = fastest->state_bytes;
      for (const NodeWay& way : graph_[node].ways) {
        if (way.tensor != tensor) continue;
        in_flight = std::min(in_flight, way.in_flight_bytes);
        state = std::min(state, way.state_bytes);
      }
      least.seconds += fastest->seconds.count();
      least.in_flight += in_flight;
      least.state += state;
      least.weights += fastest->weight_bytes;
      least.fast_in_flight += fastest->in_flight_bytes;
      least.fast_state += fastest->state_bytes;
    }
    return least;
  }

  /// Returns the bytes that a node's ways of a degree exchange for an edge.
  double exchanged(std::size_t node, const std::vector<double>& bytes, int tensor) const {
    for (std::size_t way = 0; way < bytes.size(); ++way)
      if (graph_[node].ways[way].tensor == tensor) return bytes[way];
    return 0;
  }

  EdgeSet crossed_edges(const NodeSet& set) const {
    EdgeSet crossed;
    for (const auto edge : boost::make_iterator_range(edges(graph_)))
      crossed.push_back(set.test(source(edge, graph_)) && !set.test(target(edge, graph_)));
    return crossed;
  }

  static double sum_over(const EdgeSet& set, const std::vector<double>& bytes) {
    double sum = 0;
    for (auto edge = set.find_first(); edge != EdgeSet::npos; edge = set.find_next(edge)) sum += bytes[edge];
    return sum;
  }

  /// Returns the bytes that cross the edges between a stage and all others, one way. What skips the stage does not.
  double bytes_across(const Degree& degree, int part, int whole) const {
    double bytes = degree.in[part] + degree.out[whole];
    const EdgeSet& before = crossed_[part];
    for (auto edge = before.find_first(); edge != EdgeSet::npos; edge = before.find_next(edge))
      if (crossed_[whole].test(edge)) bytes -= degree.bytes_in[edge] + degree.bytes_out[edge];
    return bytes;
  }

  /// Returns the time, for each micro-batch, in which replicas sum their weights.
  double resync(double weights, int replicas) const {
    return 4 * (replicas - 1) * weights / replicas / static_cast<double>(limits_.microbatches) /
           limits_.bytes_per_second;
  }

  double device_seconds(const NodeSet& set) const {
    double all = 0;
    for (auto node = set.find_first(); node != NodeSet::npos; node = set.find_next(node)) {
      double least = kNoFit;
      for (const NodeWay& way : graph_[node].ways) least = std::min(least, way.tensor * way.seconds.count());
      all += least;
    }
    return all;
  }

  const std::vector<Change>& changes(const Degree& degree, int in_flight) const {
    const auto [found, is_new] = degree.changes.try_emplace(in_flight);
    if (!is_new) return found->second;
    for (std::size_t node = 0; node < num_vertices(graph_); ++node) {
      const NodeWay* fastest = fastest_way(node, degree.tensor);
      for (const NodeWay& way : graph_[node].ways) {
        if (way.tensor != degree.tensor) continue;
        const double bytes =
            in_flight * (fastest->in_flight_bytes - way.in_flight_bytes) + (fastest->state_bytes - way.state_bytes);
        const double seconds = (way.seconds - fastest->seconds).count();
        if (bytes > 0) found->second.push_back({seconds / bytes, node, seconds, bytes});
      }
    }
    std::ranges::sort(found->second, {}, [](const Change& change) {
      return std::pair{change.seconds_by_byte, change.node};
    });
    return found->second;
  }

  /// Returns the time that the nodes of a stage lose in ways that fit the memory, on one replica; appends the nodes
  /// that change to `changed` if that is given. Returns kNoFit if they never fit.
  double slowdown(const Degree& degree, int part, int whole, int in_flight, std::vector<int>* changed) const {
    const Least sums = degree.sums[whole] - degree.sums[part];
    double excess = in_flight * sums.fast_in_flight + sums.fast_state - limits_.bytes, seconds = 0;
    if (excess <= 0) return 0;
    for (const Change& change : changes(degree, in_flight)) {
      if (!downsets_.sets[whole].test(change.node) || downsets_.sets[part].test(change.node)) continue;
      excess -= change.bytes;
      seconds += change.seconds;
      if (changed != nullptr) changed->push_back(static_cast<int>(change.node));
      if (excess <= 0) return seconds;
    }
    return kNoFit;
  }

  const ProfiledGraph& graph_;
  const Downsets& downsets_;
  const PiperLimits& limits_;
  std::vector<int> replica_counts_;  ///< divisors of the micro-batches
  std::map<int, Degree> degrees_;    ///< [tensor-parallel degree]
  std::vector<double> work_;         ///< [downset]
  std::vector<EdgeSet> crossed_;     ///< [downset] edges that leave it
};

}  // namespace

std::optional<StagePartition> piper_partition(const ProfiledGraph& graph, const Downsets& downsets,
                                              const PiperLimits& limits) {
  const PiperSpace space(graph, downsets, limits);
  const auto found = fastest_stages(downsets, space, limits.devices, kNoFit);
  if (!found) return std::nullopt;
  StagePartition partition = partition_of(*found, downsets);
  for (std::size_t i = 0; i < found->size(); ++i)
    for (const int node : space.rebuilt((*found)[i].part, (*found)[i].whole, (*found)[i].way))
      partition.stages[i].rebuilt.push_back(graph[static_cast<std::size_t>(node)].name);
  return partition;
}

}}  // namespace plumb::planner
