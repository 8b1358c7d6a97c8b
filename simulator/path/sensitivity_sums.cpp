#include "simulator/path/sensitivity_sums.h"

#include <algorithm>

#include "schedules/phases.h"

namespace plumb { inline namespace simulator {
namespace {

/// The parts of the time of an action or of a pair: in each phase those of the longer lane.
struct SegmentShares {
  std::array<double, 2> computing{};  ///< [action]
  std::array<std::array<double, kPricedCollectiveCount>, kGroupCount> collectives{};
  double sum = 0;
};

double sum_of(const std::vector<LaneSegment>& lane) {
  double sum = 0;
  for (const LaneSegment& of : lane) sum += of.segment->seconds.count();
  return sum;
}

SegmentShares shares_of(const CostTable& costs, std::span<const Action> actions) {
  SegmentShares shares;
  for (const CostPhase& phase : phases_of(costs, actions)) {
    const double blocking = sum_of(phase.blocking), beside = sum_of(phase.beside);
    shares.sum += std::max(blocking, beside);
    for (const LaneSegment& of : beside > blocking ? phase.beside : phase.blocking) {
      const Segment& segment = *of.segment;
      double& share =
          segment.kind == Segment::Kind::kCompute
              ? shares.computing[of.action]
              : shares
                    .collectives[static_cast<std::size_t>(segment.group)][static_cast<std::size_t>(segment.collective)];
      share += segment.seconds.count();
    }
  }
  return shares;
}

}  // namespace

SensitivitySums::SensitivitySums(const Schedule& lowered, const CostTable& costs)
    : schedule_(lowered),
      costs_(costs),
      neighbors_(stage_neighbors(lowered)),
      result_{.compute_by_stage = std::vector<Seconds>(lowered.stages.size(), Seconds{0})} {}

void SensitivitySums::add(std::span<const Action> actions, Seconds seconds) {
  const SegmentShares shares = shares_of(costs_, actions);
  const double computing = shares.computing[0] + shares.computing[1];
  const double exchanging = shares.sum > 0 ? 1 - computing / shares.sum : 0;
  for (std::size_t group = 0; shares.sum > 0 && group < kGroupCount; ++group) {
    for (std::size_t kind = 0; kind < kPricedCollectiveCount; ++kind)
      collectives_[group][kind] += shares.collectives[group][kind] / shares.sum * seconds;
  }
  const Action& first = actions.front();
  if (is_collective(first.op)) {
    (first.op == Op::kUnshard ? result_.unshard : result_.reduction) += seconds;
    return;
  }
  result_.group_collectives += exchanging * seconds;
  const Seconds computed = seconds - exchanging * seconds;
  const Seconds of_second = computing > 0 ? shares.computing[1] / computing * computed : Seconds{0};
  result_.compute_by_stage[first.stage] += computed - of_second;
  result_.compute_by_stage[actions.back().stage] += of_second;
}

void SensitivitySums::add_inner(Group group, CollectiveKind kind, Seconds seconds) {
  collectives_[static_cast<std::size_t>(group)][static_cast<std::size_t>(kind)] += seconds;
  result_.group_collectives += seconds;
}

void SensitivitySums::add_message(const Action& send, Seconds occupied, Seconds latency) {
  const auto& readers = send.op == Op::kSendActivation ? neighbors_.successor : neighbors_.predecessor;
  const int reader = sends_weights(send.op) ? send.peer : readers[send.stage];
  LinkSensitivity& by_link = links_[{schedule_.stages[send.stage].rank, schedule_.stages[reader].rank}];
  by_link.latency += latency;
  result_.latency += latency;
  if (sends_weights(send.op)) {
    (send.op == Op::kSendWeights ? result_.unshard : result_.reduction) += occupied;
    return;
  }
  by_link.bandwidth += occupied;
  result_.bandwidth += occupied;
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
