#include "simulator/sensitivity.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace plumb {
namespace {

using ByGroupAndKind = std::array<std::array<Seconds, kCollectiveKindCount>, kGroupCount>;
using ByLink = std::map<std::pair<int, int>, LinkSensitivity>;

/// What an action's time is made of: its computing and the collectives that block it, or those that run beside it and
/// outlast it.
struct Parts {
  double computing = 0;
  std::array<std::array<double, kCollectiveKindCount>, kGroupCount> collectives{};
  double sum = 0;
};

Parts parts_of(const CostTable& costs, const Action& action) {
  Parts blocking;
  Parts beside;
  for (const Segment& segment : segments_of(costs, action)) {
    Parts& parts = segment.beside ? beside : blocking;
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

/// Adds the collectives' part of `added`, divided as the action's segments are; returns it.
Seconds add_collectives(ByGroupAndKind& collectives, const CostTable& costs, const Action& action, Seconds added) {
  const Parts parts = parts_of(costs, action);
  if (!(parts.sum > 0)) return Seconds{0};
  for (std::size_t group = 0; group < kGroupCount; ++group) {
    for (std::size_t kind = 0; kind < kCollectiveKindCount; ++kind)
      collectives[group][kind] += parts.collectives[group][kind] / parts.sum * added;
  }
  return (1 - parts.computing / parts.sum) * added;
}

/// What the step adds to the path: up to the start of the next one.
Seconds contribution(const std::vector<CriticalStep>& path, std::size_t i) {
  const SimTime until = i + 1 < path.size() ? path[i + 1].start : path[i].end;
  return to_seconds(until - path[i].start);
}

/// The two actions of an overlapped pair are one step, which lasts as long as both together.
void add_compute(Sensitivity& result, ByGroupAndKind& collectives, const Schedule& lowered, const CostTable& costs,
                 const CriticalStep& step, Seconds added) {
  const std::vector<Action>& actions = lowered.ranks[step.rank];
  const auto add = [&](const Action& action, Seconds seconds) {
    const Seconds exchanged = add_collectives(collectives, costs, action, seconds);
    result.compute_by_stage[action.stage] += seconds - exchanged;
    result.group_collectives += exchanged;
  };
  const std::size_t first = step.position;
  if (!actions[first].overlaps_next) return add(actions[first], added);
  const Seconds of_first = std::min(added, to_seconds(duration_of(costs, actions[first])));
  add(actions[first], of_first);
  add(actions[first + 1], added - of_first);
}

void add_message(Sensitivity& result, ByLink& links, const Schedule& lowered, const StageNeighbors& neighbors,
                 const CostTable& costs, const CriticalStep& step, Seconds added) {
  const bool forward = step.action.op == Op::kSendActivation;
  const int reader = (forward ? neighbors.successor : neighbors.predecessor)[step.action.stage];
  const int destination = lowered.stages[reader].rank;
  const LinkCost& link = link_between(costs, step.rank, destination);
  const StageCosts& stage = costs.stages[step.action.stage];
  const std::int64_t bytes = forward ? stage.activation_message_bytes : stage.gradient_message_bytes;
  // A step that frees its channel adds no latency: delivery is later.
  const Seconds occupied =
      std::min(added, to_seconds(to_sim_time(Seconds{static_cast<double>(bytes) / link.bytes_per_second})));
  LinkSensitivity& by_link = links[{step.rank, destination}];
  by_link.bandwidth += occupied;
  by_link.latency += added - occupied;
  result.bandwidth += occupied;
  result.latency += added - occupied;
}

}  // namespace

Sensitivity sensitivity_of(const Schedule& lowered, const CostTable& costs, const std::vector<CriticalStep>& path) {
  Sensitivity result{.compute_by_stage = std::vector<Seconds>(lowered.stages.size(), Seconds{0})};
  const StageNeighbors neighbors = stage_neighbors(lowered);
  ByGroupAndKind collectives{};
  ByLink links;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const CriticalStep& step = path[i];
    const Seconds added = contribution(path, i);
    const Op op = step.action.op;
    if (is_compute(op)) {
      add_compute(result, collectives, lowered, costs, step, added);
    } else if (is_send(op)) {
      add_message(result, links, lowered, neighbors, costs, step, added);
    } else if (op == Op::kUnshard || op == Op::kReduceGrad) {
      (op == Op::kUnshard ? result.unshard : result.reduction) += added;
      add_collectives(collectives, costs, step.action, added);
    } else {
      result.moves += added;  // a receive adds nothing
    }
  }
  for (std::size_t group = 0; group < kGroupCount; ++group) {
    for (std::size_t kind = 0; kind < kCollectiveKindCount; ++kind) {
      const Seconds seconds = collectives[group][kind];
      if (seconds > Seconds{0})
        result.collectives.push_back({static_cast<Group>(group), static_cast<CollectiveKind>(kind), seconds});
    }
  }
  for (auto& [ends, link] : links) {
    if (!(link.bandwidth + link.latency > Seconds{0})) continue;
    link.source_rank = ends.first;
    link.destination_rank = ends.second;
    result.links.push_back(link);
  }
  return result;
}

}  // namespace plumb
