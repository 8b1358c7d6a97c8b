#include "planner/partition/stage_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb { inline namespace planner {
namespace {

/// The best ends of a pipeline in front of which one downset stands.
class PipelineEnds final : public StageSpace::Known {
 public:
  struct End {
    Taken taken;
    FoundStage first;    ///< of its stages
    int next_place = 0;  ///< place of the remaining stages among the ends of `first.whole`
  };

  explicit PipelineEnds(const StageSpace& space) : space_(&space) {}

  bool covers(const Taken& after) const override {
    return std::ranges::any_of(ends_, [&](const End& end) { return space_->covers(end.taken, after); });
  }

  void add(const End& end) {
    if (covers(end.taken)) return;
    std::erase_if(ends_, [&](const End& other) { return space_->covers(end.taken, other.taken); });
    ends_.push_back(end);
  }

  const std::vector<End>& all() const { return ends_; }

 private:
  const StageSpace* space_;
  std::vector<End> ends_;
};

class StageSearch {
 public:
  StageSearch(const Downsets& downsets, const StageSpace& space, int devices)
      : downsets_(downsets), space_(space), devices_(devices), last_(static_cast<int>(downsets.sets.size()) - 1) {
    for (int set = 0; set <= last_; ++set) {
      work_.push_back(space.least_work(set));
      boost::dynamic_bitset<std::uint64_t> parts(static_cast<std::size_t>(set));
      if (downsets.chain) parts.set();
      for (int part = 0; part < set && !downsets.chain; ++part)
        parts[part] = downsets.sets[part].is_subset_of(downsets.sets[set]);
      parts_.push_back(std::move(parts));
    }
  }

  /// Returns stages that take at most `limit` seconds each; nothing if there are none.
  std::optional<std::vector<FoundStage>> within(double limit) const {
    std::vector<PipelineEnds> ends(downsets_.sets.size(), PipelineEnds(space_));
    ends[last_].add({});
    std::vector<StageWay> ways;
    for (int whole = last_; whole > 0; --whole) {
      for (std::size_t place = 0; place < ends[whole].all().size(); ++place) {
        const Taken behind = ends[whole].all()[place].taken;
        const auto& parts = parts_[whole];
        for (auto part = parts.find_first(); part != parts.npos; part = parts.find_next(part)) {
          if (!enough_left(behind.devices + 1, static_cast<int>(part), limit)) continue;
          add_stages(static_cast<int>(part), whole, behind, place, limit, ends[part], ways);
        }
      }
    }
    if (ends[0].all().empty()) return std::nullopt;
    return stages_of(ends);
  }

 private:
  /// Adds the ways to run the nodes of `whole` without those of `part` in front of an end to those of `part`.
  void add_stages(int part, int whole, const Taken& behind, std::size_t place, double limit, PipelineEnds& ends,
                  std::vector<StageWay>& ways) const {
    const std::optional<Taken> least = space_.least_taken(part, whole, behind, limit);
    if (least && (!enough_left(least->devices, part, limit) || ends.covers(*least))) return;
    ways.clear();
    space_.add_ways(part, whole, behind, limit, ends, ways);
    for (const StageWay& way : ways) {
      if (!enough_left(way.after.devices, part, limit)) continue;
      ends.add({.taken = way.after,
                .first = {.part = part, .whole = whole, .behind = behind, .way = way},
                .next_place = static_cast<int>(place)});
    }
  }

  bool enough_left(int taken, int part, double limit) const {
    constexpr double kRounding = 1e-9;
    return taken + work_[part] / limit <= devices_ + kRounding;
  }

  std::vector<FoundStage> stages_of(const std::vector<PipelineEnds>& ends) const {
    std::vector<FoundStage> stages;
    for (int set = 0, place = 0; set != last_;) {
      const PipelineEnds::End& end = ends[set].all()[place];
      stages.push_back(end.first);
      set = end.first.whole;
      place = end.next_place;
    }
    return stages;
  }

  const Downsets& downsets_;
  const StageSpace& space_;
  int devices_;
  int last_;
  std::vector<double> work_;                                 ///< [downset] least device-seconds of its nodes
  std::vector<boost::dynamic_bitset<std::uint64_t>> parts_;  ///< [downset] downsets that it contains
};

double slowest_of(const std::vector<FoundStage>& stages) {
  double slowest = 0;
  for (const FoundStage& stage : stages) slowest = std::max(slowest, stage.way.seconds);
  return slowest;
}

}  // namespace

std::optional<std::vector<FoundStage>> fastest_stages(const Downsets& downsets, const StageSpace& space, int devices,
                                                      double below) {
  constexpr double kExact = 1e-12;
  const StageSearch search(downsets, space, devices);
  std::optional<std::vector<FoundStage>> best =
      search.within(std::min(below, std::numeric_limits<double>::max()) * (1 - kExact));
  if (!best) return best;
  double too_low = space.least_work(static_cast<int>(downsets.sets.size()) - 1) / devices * (1 - kExact);
  bool improved = false;
  for (double found = slowest_of(*best); too_low < found * (1 - kExact);) {
    // Near the end what was found is often the best: one look just below it says so.
    constexpr double kNear = 1e-3;
    const bool near = improved && found - too_low < kNear * found;
    const double limit = near ? found * (1 - kExact) : (too_low + found) / 2;
    std::optional<std::vector<FoundStage>> faster = search.within(limit);
    improved = faster.has_value() && !near;
    if (faster) {
      best = std::move(faster);
      found = slowest_of(*best);
    } else {
      too_low = limit;
    }
  }
  return best;
}

StagePartition partition_of(const std::vector<FoundStage>& stages, const Downsets& downsets) {
  StagePartition partition;
  for (const FoundStage& found : stages) {
    MeasuredStage stage{.nodes = {},
                        .replicas = found.way.replicas,
                        .tensor = found.way.tensor,
                        .seconds = Seconds{found.way.seconds},
                        .rebuilt = {}};
    const NodeSet nodes = downsets.sets[found.whole] - downsets.sets[found.part];
    for (auto node = nodes.find_first(); node != NodeSet::npos; node = nodes.find_next(node))
      stage.nodes.push_back(static_cast<int>(node));
    partition.stages.push_back(std::move(stage));
  }
  partition.slowest = Seconds{slowest_of(stages)};
  return partition;
}

}}  // namespace plumb::planner
