#include "simulator/repeated_stretch.h"

#include <algorithm>
#include <optional>

namespace plumb { inline namespace simulator {
namespace {

/// Times may repeat only after several periods, up to this many.
constexpr std::size_t kMostBlocksACycle = 12;

/// A step in terms that do not depend on where it stands: how many steps ago each register that it reads was written, 0
/// for never.
struct RelativeStep {
  std::uint32_t kind = 0;
  std::int64_t from = 0;
  std::int64_t input = 0;
  std::int64_t channel = 0;

  friend bool operator==(const RelativeStep&, const RelativeStep&) = default;
};

std::vector<RelativeStep> relative_steps(const CompiledSchedule& compiled) {
  std::vector<std::int64_t> written(compiled.registers, -1);  // [register] the step that wrote it
  std::vector<RelativeStep> result;
  result.reserve(compiled.steps.size());
  for (const Step& step : compiled.steps) {
    const auto here = static_cast<std::int64_t>(result.size());
    const StepKind& kind = compiled.kinds[step.kind];
    const auto age = [&](Register read) {
      return read == kUnreadRegister || written[read] < 0 ? 0 : here - written[read];
    };
    result.push_back(
        {.kind = step.kind, .from = age(kind.from), .input = age(step.input), .channel = age(kind.channel)});
    for (const Register write : {kind.to, kind.channel, step.output}) written[write] = here;
  }
  return result;
}

bool same_kinds(const std::vector<StepKind>& a, const std::vector<StepKind>& b) {
  const auto same_action = [](const Action& x, const Action& y) {
    return x.op == y.op && x.stage == y.stage && x.part == y.part && x.peer == y.peer;
  };
  return std::ranges::equal(a, b, [&](const StepKind& x, const StepKind& y) {
    return std::ranges::equal(x.actions, y.actions, same_action) && x.lasts_longest == y.lasts_longest &&
           x.recomputed == y.recomputed && x.occupies_rank == y.occupies_rank && x.sends == y.sends &&
           same_action(x.send, y.send) && x.starts_inside == y.starts_inside && same_action(x.host, y.host) &&
           x.rank == y.rank && x.from == y.from && x.to == y.to && x.channel == y.channel;
  });
}

}  // namespace

std::optional<RepeatedStretch> stretch_of(const CompiledSchedule& shorter, const CompiledSchedule& longer) {
  if (longer.steps.size() <= shorter.steps.size() || !same_kinds(shorter.kinds, longer.kinds)) return std::nullopt;
  const std::vector<RelativeStep> a = relative_steps(shorter);
  const std::vector<RelativeStep> b = relative_steps(longer);
  const auto prefix = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  const auto suffix =
      static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
  RepeatedStretch stretch{.begin = a.size() - suffix, .end = prefix, .block = b.size() - a.size()};
  if (stretch.begin + 2 * stretch.block > stretch.end) return std::nullopt;
  for (std::size_t i = stretch.begin; i < stretch.end; ++i)
    stretch.reach = std::max(stretch.reach, static_cast<std::size_t>(std::max({a[i].from, a[i].input, a[i].channel})));
  return stretch;
}

std::optional<Cycle> cycle_of(const RepeatedStretch& stretch, const std::vector<Moments>& moments) {
  for (std::size_t blocks = 1; blocks <= kMostBlocksACycle; ++blocks) {
    const std::size_t steps = blocks * stretch.block;
    std::size_t equal = 0;  // steps in a row that have one shift
    SimTime shift{0};
    for (std::size_t i = stretch.begin; i + 2 * steps < stretch.end; ++i) {
      const SimTime start_shift = moments[i + steps].start - moments[i].start;
      const SimTime departure_shift = moments[i + steps].departure - moments[i].departure;
      if (equal == 0 || start_shift != shift || departure_shift != shift) {
        shift = start_shift;
        equal = departure_shift == shift ? 1 : 0;
      } else {
        ++equal;
      }
      const std::size_t wanted = std::max(stretch.reach, steps);
      if (equal >= wanted) return Cycle{.at = i + 1, .steps = steps, .blocks = blocks, .shift = shift};
    }
  }
  return std::nullopt;
}

Extrapolated extrapolate(const CompiledSchedule& compiled, const std::vector<StepCost>& costs,
                         const std::vector<Moments>& moments, const Cycle& cycle, std::int64_t cycles) {
  // No moment is later than the last one of the shorter schedule, shifted, and a rank is busy no longer than that.
  const double last_shift = static_cast<double>(cycles) * static_cast<double>(cycle.shift.count());
  if (last_shift > static_cast<double>(kLatestMoment.count()))
    refuse_late_moment("the step", longest_part(compiled, costs));
  Extrapolated result{.ranks = std::vector<RankStatistics>(static_cast<std::size_t>(compiled.ranks))};
  for (std::size_t i = 0; i < compiled.steps.size(); ++i) {
    const std::uint32_t kind = compiled.steps[i].kind;
    const SimTime shift = i < cycle.at ? SimTime{0} : cycles * cycle.shift;
    const SimTime last = std::max(moments[i].end, moments[i].departure + costs[kind].delivered);
    result.makespan = std::max(result.makespan, last + shift);
    if (result.makespan > kLatestMoment) refuse_late_moment("the step", longest_part(compiled, costs));
    if (!compiled.kinds[kind].occupies_rank) continue;
    RankStatistics& rank = result.ranks[compiled.kinds[kind].rank];
    const bool repeated = i >= cycle.at && i < cycle.at + cycle.steps;
    rank.busy += (repeated ? cycles + 1 : 1) * costs[kind].duration;
    rank.last_end = moments[i].end + shift;
    const bool is_first = compiled.first_steps[compiled.kinds[kind].rank] == static_cast<std::int64_t>(i);
    if (is_first) rank.first_start = moments[i].start + shift;
  }
  for (RankStatistics& rank : result.ranks) rank.idle = result.makespan - rank.busy;
  return result;
}

}}  // namespace plumb::simulator
