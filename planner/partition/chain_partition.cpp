#include "planner/partition/chain_partition.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace plumb { inline namespace planner {
namespace {

constexpr double kNoCut = std::numeric_limits<double>::infinity();

std::vector<double> sums_of(const std::vector<double>& values, std::size_t nodes) {
  std::vector<double> sums(nodes + 1, 0);
  for (std::size_t i = 0; i < values.size() && i < nodes; ++i) sums[i + 1] = sums[i] + values[i];
  return sums;
}

class Partitioner {
 public:
  Partitioner(const Chain& chain, const ChainLimits& limits)
      : limits_(limits), nodes_(static_cast<int>(chain.seconds.size())), cut_bytes_(chain.cut_bytes) {
    std::vector<double> seconds;
    for (const Seconds time : chain.seconds) seconds.push_back(time.count());
    time_ = sums_of(seconds, chain.seconds.size());
    state_ = sums_of(chain.state_bytes, chain.seconds.size());
    activation_ = sums_of(chain.activation_bytes, chain.seconds.size());
    cut_bytes_.resize(chain.seconds.size() + 1, 0);
  }

  std::optional<std::vector<int>> run() const {
    const auto slowest = [](double before, double stage, double message, double) {
      return std::max({before, stage, message});
    };
    const Table fastest = table(slowest, kNoCut);
    const double best = fastest.value.back().back();
    if (best == kNoCut) return std::nullopt;
    const auto bytes = [](double before, double, double, double cut) { return before + cut; };
    constexpr double kAlike = 1.01;
    return counts(table(bytes, best * kAlike));
  }

 private:
  struct Table {
    std::vector<std::vector<double>> value;  ///< [part][end] best objective of parts 0..part over nodes 0..end
    std::vector<std::vector<int>> begin;     ///< [part][end] first node of that part
  };

  bool fits(int part, int begin, int end) const {
    if (limits_.bytes.empty()) return true;
    const int held = limits_.in_flight.empty() ? 1 : limits_.in_flight[static_cast<std::size_t>(part)];
    return state_[end] - state_[begin] + held * (activation_[end] - activation_[begin]) <=
           limits_.bytes[static_cast<std::size_t>(part)];
  }

  double message(int part, int begin) const {
    if (part == 0 || limits_.bytes_per_second.empty()) return 0;
    return cut_bytes_[begin] / limits_.bytes_per_second[static_cast<std::size_t>(part - 1)];
  }

  /// Returns the best partitions whose stages and messages take at most `limit` seconds. A stage grows as it begins
  /// earlier, which ends each search.
  template <class Objective>
  Table table(Objective objective, double limit) const {
    const auto parts = static_cast<std::size_t>(limits_.parts);
    const std::vector<double> never(static_cast<std::size_t>(nodes_) + 1, kNoCut);
    Table best{.value = {parts, never}, .begin = {parts, std::vector<int>(never.size(), 0)}};
    for (int part = 0; part < limits_.parts; ++part) {
      const double slowness = limits_.slowness_of(static_cast<std::size_t>(part));
      for (int end = part + 1; end <= nodes_ - (limits_.parts - 1 - part); ++end) {
        for (int begin = end - 1; begin >= part; --begin) {
          const double stage = (time_[end] - time_[begin]) * slowness;
          if (stage > limit || !fits(part, begin, end)) break;
          if (limit == kNoCut && stage >= best.value[part][end]) break;  // no earlier begin can be faster
          if (part == 0 && begin > 0) continue;
          const double before = part == 0 ? 0 : best.value[part - 1][begin];
          if (before == kNoCut || message(part, begin) > limit) continue;
          const double value = objective(before, stage, message(part, begin), part == 0 ? 0 : cut_bytes_[begin]);
          if (value < best.value[part][end]) {
            best.value[part][end] = value;
            best.begin[part][end] = begin;
          }
        }
      }
    }
    return best;
  }

  std::vector<int> counts(const Table& table) const {
    std::vector<int> counts(static_cast<std::size_t>(limits_.parts), 0);
    int end = nodes_;
    for (int part = limits_.parts - 1; part >= 0; --part) {
      const int begin = table.begin[part][end];
      counts[static_cast<std::size_t>(part)] = end - begin;
      end = begin;
    }
    return counts;
  }

  const ChainLimits& limits_;
  int nodes_;
  std::vector<double> time_, state_, activation_;  ///< [node] sum over all nodes before it
  std::vector<double> cut_bytes_;
};

}  // namespace

std::optional<std::vector<int>> chain_partition(const Chain& chain, const ChainLimits& limits) {
  assert(limits.parts >= 1 && std::ssize(chain.seconds) >= limits.parts);
  return Partitioner(chain, limits).run();
}

}}  // namespace plumb::planner
