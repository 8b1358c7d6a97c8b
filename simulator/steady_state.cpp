#include "simulator/steady_state.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/compile/compiled_schedule.h"
#include "simulator/engine/action_costs.h"
#include "simulator/engine/engine.h"
#include "simulator/memory/memory.h"
#include "simulator/summary.h"

namespace plumb { inline namespace simulator {
namespace {

/// The first shorter schedule has this many periods; each further try has twice as many.
constexpr int kFirstPeriods = 4;

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
    return x.op == y.op && x.stage == y.stage && x.part == y.part;
  };
  return std::ranges::equal(a, b, [&](const StepKind& x, const StepKind& y) {
    return std::ranges::equal(x.actions, y.actions, same_action) && x.lasts_longest == y.lasts_longest &&
           x.recomputed == y.recomputed && x.occupies_rank == y.occupies_rank && x.sends == y.sends &&
           same_action(x.send, y.send) && x.starts_inside == y.starts_inside && same_action(x.host, y.host) &&
           x.rank == y.rank && x.from == y.from && x.to == y.to && x.channel == y.channel;
  });
}

/// Steps [begin, end) of a compiled schedule repeat with blocks of `block` steps.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t block = 0;
  std::size_t reach = 0;  ///< no step of it reads a register that was written more steps ago
};

/// Returns the stretch where `longer` has one more block than `shorter`, or nothing if they differ in more than that.
std::optional<Stretch> stretch_of(const CompiledSchedule& shorter, const CompiledSchedule& longer) {
  if (longer.steps.size() <= shorter.steps.size() || !same_kinds(shorter.kinds, longer.kinds)) return std::nullopt;
  const std::vector<RelativeStep> a = relative_steps(shorter);
  const std::vector<RelativeStep> b = relative_steps(longer);
  const auto prefix = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  const auto suffix =
      static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
  Stretch stretch{.begin = a.size() - suffix, .end = prefix, .block = b.size() - a.size()};
  if (stretch.begin + 2 * stretch.block > stretch.end) return std::nullopt;
  for (std::size_t i = stretch.begin; i < stretch.end; ++i)
    stretch.reach = std::max(stretch.reach, static_cast<std::size_t>(std::max({a[i].from, a[i].input, a[i].channel})));
  return stretch;
}

/// From step `at` on, the times of a stretch repeat after `steps` steps, later by `shift`.
struct Cycle {
  std::size_t at = 0;
  std::size_t steps = 0;
  std::size_t blocks = 1;
  SimTime shift{0};
};

std::optional<Cycle> cycle_of(const Stretch& stretch, const std::vector<Moments>& moments) {
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

/// True if the cycle leaves every rank's memory as it found it.
bool keeps_memory(const CompiledSchedule& compiled, const Cycle& cycle, const std::vector<KindMemory>& kinds) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(compiled.ranks), 0);
  std::vector<int> activations(static_cast<std::size_t>(compiled.ranks), 0);
  for (std::size_t i = cycle.at; i < cycle.at + cycle.steps; ++i) {
    const KindMemory& kind = kinds[compiled.steps[i].kind];
    bytes[kind.rank] += kind.taken_bytes - kind.returned_bytes;
    activations[kind.rank] += kind.taken_activations - kind.returned_activations;
  }
  return std::ranges::all_of(bytes, [](std::int64_t b) { return b == 0; }) &&
         std::ranges::all_of(activations, [](int a) { return a == 0; });
}

/// The times of a schedule with `cycles` more of that cycle.
struct Extrapolated {
  SimTime makespan{0};
  std::vector<RankStatistics> ranks;
};
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

/// One try with a shorter schedule.
struct Attempt {
  std::optional<Simulation> simulation;
  /// So many periods more, and the part that is left out is whole cycles.
  int missing_blocks = 0;
};

Attempt attempt(const RepeatingSchedule& repeating, int microbatches, const CostTable& costs, Sends sends) {
  const Schedule schedule = repeating.lowered(microbatches);
  const CompiledSchedule compiled = compile(schedule, sends);
  if (!holds_in_issue_order(schedule, compiled, costs)) return {};
  const auto stretch = stretch_of(compiled, compile(repeating.lowered(microbatches + repeating.period), sends));
  if (!stretch) return {};

  const std::vector<StepCost> by_kind = step_costs(compiled, convert_costs(schedule, costs));
  const std::vector<Moments> moments = step_moments(compiled, by_kind);
  const std::optional<Cycle> cycle = cycle_of(*stretch, moments);
  if (!cycle || !keeps_memory(compiled, *cycle, memory_by_kind(schedule, compiled, costs, by_kind))) return {};
  const int left_out = (repeating.microbatches - microbatches) / repeating.period;
  const int rest = left_out % static_cast<int>(cycle->blocks);
  if (rest != 0) return {.missing_blocks = rest};

  const Extrapolated times =
      extrapolate(compiled, by_kind, moments, *cycle, left_out / static_cast<int>(cycle->blocks));
  StepTimes starts;
  for (const Moments& moment : moments) starts.start.push_back(moment.start);
  Simulation simulation =
      summary_of(times.ranks, times.makespan, peaks_by_rank(schedule, compiled, costs, by_kind, starts));
  simulation.engine = "steady state";
  return {.simulation = std::move(simulation)};
}

}  // namespace

Simulation simulate_repeating(const RepeatingSchedule& repeating, const CostTable& costs, Sends sends) {
  const int period = repeating.period;
  const int m = repeating.microbatches;
  for (int periods = kFirstPeriods; period > 0 && 2 * periods < m / period; periods *= 2) {
    const int shorter = periods * period + m % period;
    Attempt found = attempt(repeating, shorter, costs, sends);
    if (found.missing_blocks > 0) found = attempt(repeating, shorter + found.missing_blocks * period, costs, sends);
    if (found.simulation) return std::move(*found.simulation);
  }
  return simulate(repeating.lowered(m), costs, {.sends = sends, .validate = false, .record_timeline = false});
}

}}  // namespace plumb::simulator
