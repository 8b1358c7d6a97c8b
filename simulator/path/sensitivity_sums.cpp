#include "simulator/path/sensitivity_sums.h"

namespace plumb { inline namespace simulator {
namespace {

/// The parts of an action's time: its computing and the collectives that block it, or those that run beside it and
/// outlast it.
struct SegmentShares {
  double computing = 0;
  std::array<std::array<double, kPricedCollectiveCount>, kGroupCount> collectives{};
  double sum = 0;
};

SegmentShares parts_of(const CostTable& costs, const Action& action) {
  SegmentShares blocking;
  SegmentShares beside;
  for (const Segment& segment : segments_of(costs, action)) {
    SegmentShares& parts = segment.beside ? beside : blocking;
    const double seconds = segment.seconds.count();
    parts.sum += seconds;
    if (segment.kind == Segment::Kind::kCompute) {
      parts.computing += seconds;
    } else {
      parts.collectives[static_cast<std::size_t>(segment.group)][static_cast<std::size_t>(segment.collective)] +=
          seconds;
    }
  }
  return beside.sum > blocking.sum ? beside : blocking;
}

}  // namespace

SensitivitySums::SensitivitySums(const Schedule& lowered, const CostTable& costs)
    : schedule_(lowered),
      costs_(costs),
      neighbors_(stage_neighbors(lowered)),
      result_{.compute_by_stage = std::vector<Seconds>(lowered.stages.size(), Seconds{0})} {}

/// Adds the collectives' part of `added`, divided as the action's segments are, and returns it.
Seconds SensitivitySums::add_collectives(const Action& action, Seconds added) {
  const SegmentShares parts = parts_of(costs_, action);
  if (!(parts.sum > 0)) return Seconds{0};
  for (std::size_t group = 0; group < kGroupCount; ++group) {
    for (std::size_t kind = 0; kind < kPricedCollectiveCount; ++kind)
      collectives_[group][kind] += parts.collectives[group][kind] / parts.sum * added;
  }
  return (1 - parts.computing / parts.sum) * added;
}

void SensitivitySums::add(const Action& action, Seconds seconds) {
  const Seconds exchanged = add_collectives(action, seconds);
  if (is_collective(action.op)) {
    (action.op == Op::kUnshard ? result_.unshard : result_.reduction) += seconds;
    return;
  }
  result_.compute_by_stage[action.stage] += seconds - exchanged;
  result_.group_collectives += exchanged;
}

void SensitivitySums::add_inner(Group group, CollectiveKind kind, Seconds seconds) {
  collectives_[static_cast<std::size_t>(group)][static_cast<std::size_t>(kind)] += seconds;
  result_.group_collectives += seconds;
}

void SensitivitySums::add_message(const Action& send, Seconds bandwidth, Seconds latency) {
  const int reader = (send.op == Op::kSendActivation ? neighbors_.successor : neighbors_.predecessor)[send.stage];
  LinkSensitivity& by_link = links_[{schedule_.stages[send.stage].rank, schedule_.stages[reader].rank}];
  by_link.bandwidth += bandwidth;
  by_link.latency += latency;
  result_.bandwidth += bandwidth;
  result_.latency += latency;
}

void SensitivitySums::add_capacity(const std::string& kind, Seconds seconds) {
  result_.capacity += seconds;
  capacities_[kind] += seconds;
}

Sensitivity SensitivitySums::finish() {
  for (std::size_t group = 0; group < kGroupCount; ++group) {
    for (std::size_t kind = 0; kind < kPricedCollectiveCount; ++kind) {
      const Seconds seconds = collectives_[group][kind];
      if (seconds > Seconds{0})
        result_.collectives.push_back({static_cast<Group>(group), static_cast<CollectiveKind>(kind), seconds});
    }
  }
  for (auto& [ends, link] : links_) {
    if (!(link.bandwidth + link.latency > Seconds{0})) continue;
    link.source_rank = ends.first;
    link.destination_rank = ends.second;
    result_.links.push_back(link);
  }
  for (const auto& [kind, seconds] : capacities_) {
    if (seconds != Seconds{0}) result_.shared_links.push_back({kind, seconds});
  }
  return std::move(result_);
}

}}  // namespace plumb::simulator
