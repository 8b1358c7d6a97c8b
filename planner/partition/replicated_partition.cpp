#include "planner/partition/replicated_partition.h"

#include <algorithm>
#include <cmath>

#include "planner/partition/stage_search.h"

namespace plumb { inline namespace planner {
namespace {

class ReplicatedSpace final : public StageSpace {
 public:
  ReplicatedSpace(const ProfiledGraph& graph, const Downsets& downsets, const ReplicatedLimits& limits)
      : limits_(limits), levels_(limits.levels), devices_(device_count(levels_)) {
    for (const NodeSet& set : downsets.sets) {
      Sums sums;
      for (auto node = set.find_first(); node != NodeSet::npos; node = set.find_next(node)) {
        const NodeWay& way = graph[node].ways.front();
        sums.seconds += way.seconds.count();
        sums.weights += way.weight_bytes;
        sums.state += way.state_bytes;
        sums.in_flight += way.in_flight_bytes;
      }
      if (limits.transfers) sums.bytes_out = bytes_out(graph, set);
      sums_.push_back(sums);
    }
  }

  /// Shares the outermost level among so many copies of the pipeline, whose number divides it.
  void share_among(int copies) {
    copies_ = copies;
    levels_.back().count = limits_.levels.back().count / copies;
    devices_ = device_count(levels_);
  }

  int devices() const { return devices_; }

  double least_work(int downset) const override { return sums_[downset].seconds / copies_; }

  /// The place within a part of the outermost level decides which link the next transfer takes.
  bool covers(const Taken& a, const Taken& b) const override {
    const int part = limits_.transfers ? devices_ / levels_.back().count : 1;
    return a.replicas <= b.replicas && a.devices <= b.devices && (b.devices - a.devices) % part == 0;
  }

  std::optional<Taken> least_taken(int part, int whole, const Taken& behind, double limit) const override {
    if (limits_.transfers && levels_.size() > 1) return std::nullopt;
    const double devices = std::floor((least_work(whole) - least_work(part)) / limit);
    const int least = std::max(1, static_cast<int>(std::min<double>(devices, devices_ + 1)));
    return Taken{.devices = behind.devices + least, .replicas = behind.replicas + least};
  }

  void add_ways(int part, int whole, const Taken& behind, double limit, const Known& known,
                std::vector<StageWay>& ways) const override {
    const double work = least_work(whole) - least_work(part);
    const int most = limits_.straight ? 1 : devices_ - behind.devices;
    const double fewest = std::floor(work / limit);
    if (fewest > most) return;
    for (int replicas = std::max(1, static_cast<int>(fewest)); replicas <= most; ++replicas) {
      const int start = start_of(behind.devices, replicas);
      if (start < 0 || start + replicas > devices_) continue;
      const Taken after{.devices = start + replicas, .replicas = behind.replicas + replicas};
      if (known.covers(after) || covered_by(ways, after)) continue;
      if (!fits(part, whole, after.replicas, replicas)) continue;
      const double seconds =
          std::max({stage_seconds(part, whole, replicas), transfer(whole, behind.devices, after.devices, replicas),
                    transfer(part, after.devices, after.devices + 1, replicas)});
      if (seconds <= limit) ways.push_back({.after = after, .replicas = replicas, .tensor = 1, .seconds = seconds});
    }
  }

 private:
  bool covered_by(const std::vector<StageWay>& ways, const Taken& after) const {
    return std::ranges::any_of(ways, [&](const StageWay& way) { return covers(way.after, after); });
  }

  struct Sums {
    double seconds = 0, weights = 0, state = 0, in_flight = 0;
    double bytes_out = 0;
  };

  /// Returns the first device behind `taken` others at which so many fit; -1 if that many never lie together.
  int start_of(int taken, int replicas) const {
    int inner = 1;  // devices of a part of the level
    for (const MachineLevel& level : levels_) {
      if (replicas % inner != 0) return -1;
      const int outer = inner * level.count;
      if (replicas <= outer) {
        const int start = (taken + inner - 1) / inner * inner;
        return start / outer == (start + replicas - 1) / outer ? start : (start / outer + 1) * outer;
      }
      inner = outer;
    }
    return -1;
  }

  double stage_seconds(int part, int whole, int replicas) const {
    const double weights = sums_[whole].weights - sums_[part].weights;
    double seconds = sums_[whole].seconds - sums_[part].seconds;
    int inner = 1;
    for (const MachineLevel& level : levels_) {
      const int parts = std::min(level.count, replicas / inner);
      if (parts <= 1) break;
      seconds = (seconds + 4 * (parts - 1) * weights / (level.bytes_per_second * parts * inner)) / parts;
      inner *= parts;
    }
    return (seconds + 4 * (copies_ - 1) * weights / (levels_.back().bytes_per_second * copies_ * replicas)) / copies_;
  }

  bool fits(int part, int whole, int all_replicas, int replicas) const {
    const int held = (all_replicas + replicas - 1) / replicas;
    return sums_[whole].state - sums_[part].state + held * (sums_[whole].in_flight - sums_[part].in_flight) <=
           limits_.bytes;
  }

  /// Returns the time of what crosses the downset on the links of one end of it, which has so many replicas. The end
  /// and the nearest device of the other end lie from device `from` - 1 to device `to` - 1.
  double transfer(int downset, int from, int to, int replicas) const {
    if (!limits_.transfers || from == 0 || sums_[downset].bytes_out == 0) return 0;
    int inner = 1;
    double seconds = 0;
    for (const MachineLevel& level : levels_) {
      inner *= level.count;
      seconds = 2 * sums_[downset].bytes_out / (level.bytes_per_second * replicas * copies_);
      if ((from - 1) / inner == (to - 1) / inner) break;
    }
    return seconds;
  }

  const ReplicatedLimits& limits_;
  std::vector<MachineLevel> levels_;  ///< of one copy of the pipeline
  int copies_ = 1;
  int devices_;             ///< of one copy
  std::vector<Sums> sums_;  ///< [downset]
};

}  // namespace

std::optional<StagePartition> replicated_partition(const ProfiledGraph& graph, const Downsets& downsets,
                                                   const ReplicatedLimits& limits) {
  ReplicatedSpace space(graph, downsets, limits);
  std::optional<StagePartition> best;
  const int outermost = limits.levels.back().count;
  for (int copies = 1; copies <= (limits.straight ? 1 : outermost); ++copies) {
    if (outermost % copies != 0) continue;
    space.share_among(copies);
    const double below = best ? best->slowest.count() : std::numeric_limits<double>::infinity();
    const auto found = fastest_stages(downsets, space, space.devices(), below);
    if (!found) continue;
    best = partition_of(*found, downsets);
    for (MeasuredStage& stage : best->stages) stage.replicas *= copies;
  }
  return best;
}

}}  // namespace plumb::planner
