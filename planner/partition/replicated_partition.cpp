#include "planner/partition/replicated_partition.h"

#include <algorithm>
#include <cassert>

namespace plumb { inline namespace planner {
namespace {

constexpr double kNoReplication = std::numeric_limits<double>::infinity();

class Replicator {
 public:
  Replicator(const Chain& chain, const std::vector<double>& weight_bytes, const ReplicatedLimits& limits)
      : limits_(limits), nodes_(static_cast<int>(chain.seconds.size())), cut_(chain.cut_bytes) {
    cut_.resize(chain.seconds.size() + 1, 0);
    const auto sum = [&](std::vector<double>& sums, auto value) {
      sums.assign(1, 0);
      for (std::size_t i = 0; i < chain.seconds.size(); ++i) sums.push_back(sums.back() + value(i));
    };
    const auto or_none = [](const std::vector<double>& list, std::size_t i) { return list.empty() ? 0 : list[i]; };
    sum(time_, [&](std::size_t i) { return chain.seconds[i].count(); });
    sum(weights_, [&](std::size_t i) { return or_none(weight_bytes, i); });
    sum(state_, [&](std::size_t i) { return or_none(chain.state_bytes, i); });
    sum(kept_, [&](std::size_t i) { return or_none(chain.activation_bytes, i); });
  }

  std::optional<ReplicatedPartition> run() {
    const auto nodes = static_cast<std::size_t>(nodes_), devices = static_cast<std::size_t>(limits_.devices);
    best_.assign(nodes + 1, std::vector<Choice>(devices + 1));
    for (int left = 0; left <= limits_.devices; ++left)
      best_[nodes][left].seconds = limits_.straight && left > 0 ? kNoReplication : 0;
    for (int begin = nodes_ - 1; begin >= 0; --begin)
      for (int left = 1; left <= limits_.devices; ++left) best_[begin][left] = choose(begin, left);
    if (best_[0][devices].seconds == kNoReplication) return std::nullopt;
    ReplicatedPartition partition{.slowest = Seconds{best_[0][devices].seconds}};
    for (int begin = 0, left = limits_.devices; begin < nodes_;) {
      const Choice& choice = best_[begin][left];
      partition.stages.push_back({.nodes = choice.end - begin,
                                  .replicas = choice.replicas,
                                  .seconds = Seconds{stage_seconds(begin, choice.end, choice.replicas)}});
      begin = choice.end;
      left -= choice.replicas;
    }
    return partition;
  }

 private:
  struct Choice {
    double seconds = kNoReplication;
    int end = 0;
    int replicas = 0;
  };

  double stage_seconds(int begin, int end, int replicas) const {
    const double reduced =
        4.0 * (replicas - 1) * (weights_[end] - weights_[begin]) / (limits_.bytes_per_second * replicas);
    return (time_[end] - time_[begin] + reduced) / replicas;
  }

  bool fits(int begin, int end, int replicas, int left) const {
    const int held = (left + replicas - 1) / replicas;
    return state_[end] - state_[begin] + held * (kept_[end] - kept_[begin]) <= limits_.bytes;
  }

  Choice choose(int begin, int left) const {
    Choice best;
    const double entered = limits_.transfers && begin > 0 ? 2 * cut_[begin] / limits_.bytes_per_second : 0;
    for (int replicas = 1; replicas <= (limits_.straight ? 1 : left); ++replicas) {
      for (int end = begin + 1; end <= nodes_; ++end) {
        const double stage = std::max(stage_seconds(begin, end, replicas), entered);
        if (!fits(begin, end, replicas, left)) break;
        const double seconds = std::max(stage, best_[end][left - replicas].seconds);
        if (seconds < best.seconds) best = {.seconds = seconds, .end = end, .replicas = replicas};
      }
    }
    return best;
  }

  const ReplicatedLimits& limits_;
  int nodes_;
  std::vector<double> cut_, time_, weights_, state_, kept_;
  std::vector<std::vector<Choice>> best_;  ///< [first node][devices left] best stages from there to the end
};

}  // namespace

std::optional<ReplicatedPartition> replicated_partition(const Chain& chain, const std::vector<double>& weight_bytes,
                                                        const ReplicatedLimits& limits) {
  assert(limits.devices >= 1 && !chain.seconds.empty());
  return Replicator(chain, weight_bytes, limits).run();
}

}}  // namespace plumb::planner
