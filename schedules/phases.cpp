#include "schedules/phases.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace plumb { inline namespace schedules {
namespace {

bool has_beside(const std::vector<Segment>& segments) {
  return std::ranges::any_of(segments, &Segment::beside);
}

/// Adds the segments of an action of a pair: its compute to its own phase, its collectives to the other's.
void add_interleaved(std::vector<CostPhase>& phases, const std::vector<Segment>& segments, std::uint8_t action) {
  for (const Segment& segment : segments) {
    if (segment.kind == Segment::Kind::kCompute)
      phases[action].blocking.push_back({&segment, action});
    else
      phases[1 - action].beside.push_back({&segment, action});
  }
}

CostPhase phase_of(const std::vector<Segment>& segments, std::uint8_t action) {
  CostPhase phase;
  for (const Segment& segment : segments)
    (segment.beside ? phase.beside : phase.blocking).push_back({&segment, action});
  return phase;
}

}  // namespace

bool take_turns(const Action& first, const Action& second) {
  const auto is_pass = [](const Action& action) { return action.op <= Op::kRecompute; };
  if (!is_pass(first) || !is_pass(second)) return false;
  return first.stage != second.stage || first.op == Op::kForward || second.op == Op::kForward;
}

std::vector<CostPhase> phases_of(const CostTable& costs, std::span<const Action> actions) {
  assert(actions.size() == 1 || actions.size() == 2);
  const std::vector<Segment>& first = segments_of(costs, actions.front());
  if (actions.size() == 1) return {phase_of(first, 0)};
  const std::vector<Segment>& second = segments_of(costs, actions.back());
  const bool follow = !take_turns(actions.front(), actions.back()) || has_beside(first) || has_beside(second);
  if (follow) return {phase_of(first, 0), phase_of(second, 1)};
  std::vector<CostPhase> phases(2);
  add_interleaved(phases, first, 0);
  add_interleaved(phases, second, 1);
  return phases;
}

SimTime pair_duration(const CostTable& costs, const Action& first, const Action& second) {
  for (const Action& action : {first, second}) duration_of(costs, action);  // refuses what cannot be simulated
  const auto sum_of = [](const std::vector<LaneSegment>& lane) {
    SimTime sum{0};
    for (const LaneSegment& of : lane) sum += to_sim_time(of.segment->seconds);
    return sum;
  };
  const std::array<Action, 2> both = {first, second};
  SimTime lasts{0};
  for (const CostPhase& phase : phases_of(costs, both)) lasts += std::max(sum_of(phase.blocking), sum_of(phase.beside));
  return lasts;
}

}}  // namespace plumb::schedules
