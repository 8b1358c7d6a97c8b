#include "simulator/noise/noise.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <thread>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/limits.h"
#include "simulator/compile/compiled_schedule.h"
#include "simulator/engine/action_costs.h"
#include "simulator/engine/engine.h"
#include "simulator/noise/noise_draws.h"

namespace plumb { inline namespace simulator {
namespace {

/// True for a collective of all replicas.
bool joins_replicas(const StepKind& kind) {
  return !kind.actions.empty() &&
         (kind.actions.front().op == Op::kUnshard || kind.actions.front().op == Op::kReduceGrad);
}

/// Sums more time than SimTime holds, exactly, whatever the order.
class LongTime {
 public:
  void add(SimTime time) {
    constexpr std::int64_t kPerSecond = SimTime::period::den;
    rest_ += time.count() % kPerSecond;
    seconds_ += time.count() / kPerSecond + rest_ / kPerSecond;
    rest_ %= kPerSecond;
  }
  void add(const LongTime& other) {
    seconds_ += other.seconds_;
    add(SimTime{other.rest_});
  }
  Seconds total() const { return Seconds{static_cast<double>(seconds_)} + to_seconds(SimTime{rest_}); }

 private:
  std::int64_t seconds_ = 0;
  std::int64_t rest_ = 0;  ///< picoseconds, less than a second
};

/// One run of all replicas, side by side.
class Run {
 public:
  Run(const CompiledSchedule& compiled, const std::vector<StepCost>& costs, const NoiseSpec& noise,
      const NoiseShapes& shapes, int run)
      : compiled_(compiled),
        costs_(costs),
        noise_(noise),
        draws_(shapes, noise.seed, run, noise.replicas, compiled.ranks),
        registers_(static_cast<std::size_t>(noise.replicas), std::vector<SimTime>(compiled.registers)),
        busy_(static_cast<std::size_t>(noise.replicas) * compiled.ranks) {}

  NoisyRun finish() {
    for (std::size_t i = 0; i < compiled_.steps.size(); ++i) step(i);
    NoisyRun totals{.busy = std::move(busy_)};
    for (const auto& registers : registers_)
      totals.makespan = std::max(totals.makespan, *std::ranges::max_element(registers));
    return totals;
  }

 private:
  /// Does run_step with costs that were drawn, whose bound is not known ahead. Refuses a step that would end too late.
  void run(SimTime* registers, const Step& step, const StepCost& drawn, SimTime start) const {
    bool is_late = drawn.duration > kLongestCost || drawn.delivered > kLongestCost;
    is_late = is_late || run_step(registers, step, drawn, start).departure + drawn.delivered > kLatestMoment;
    if (is_late) refuse_late_moment("a step with noise", longest_part(compiled_, costs_));
  }

  void step(std::size_t i) {
    const Step& step = compiled_.steps[i];
    const StepKind& kind = compiled_.kinds[step.kind];
    const StepCost& cost = costs_[step.kind];
    if (kind.starts_inside) return reduce_inside(i, step, kind, cost);
    if (joins_replicas(kind)) {
      SimTime start{0};
      for (const auto& registers : registers_) start = std::max(start, start_of(registers.data(), step, cost));
      StepCost drawn = cost;
      drawn.duration = times_factor(cost.duration, draws_.collective(collective(i)));
      for (auto& registers : registers_) run(registers.data(), step, drawn, start);
      return;
    }
    for (int replica = 0; replica < noise_.replicas; ++replica) {
      SimTime* registers = registers_[replica].data();
      const StepCost drawn = kind.actions.empty() && !kind.sends ? cost : drawn_cost(i, kind, cost, replica);
      run(registers, step, drawn, start_of(registers, step, drawn));
      if (kind.occupies_rank) busy_[replica * compiled_.ranks + kind.rank] += drawn.duration;
    }
  }

  /// A bucket is complete at its share of its host's time, which was drawn for the host. The sum departs when the
  /// bucket is complete on every replica.
  void reduce_inside(std::size_t i, const Step& step, const StepKind& kind, const StepCost& cost) {
    SimTime departure{0};
    for (int replica = 0; replica < noise_.replicas; ++replica) {
      const SimTime* registers = registers_[replica].data();
      const SimTime offset = times_factor(cost.duration, draws_.compute(replica, kind.rank, compiled_.send_ids[i]));
      departure = std::max({departure, start_of(registers, step, cost) + offset, registers[cost.channel]});
    }
    departure = std::min(departure, kLatestMoment);
    const double common = draws_.collective(compiled_.action_ids[i]);
    const SimTime delivered = departure + times_factor(cost.delivered, common);
    if (delivered > kLatestMoment) refuse_late_moment("a step with noise", longest_part(compiled_, costs_));
    for (auto& registers : registers_) {
      registers[cost.channel] = departure + times_factor(cost.occupied, common);
      registers[step.output] = delivered;
    }
  }

  StepCost drawn_cost(std::size_t i, const StepKind& kind, const StepCost& cost, int replica) const {
    StepCost drawn = cost;
    const std::int32_t action = compiled_.action_ids[i];
    if (kind.occupies_rank) {
      drawn.duration = times_factor(cost.duration, draws_.compute(replica, kind.rank, action));
    } else if (!kind.actions.empty()) {
      const double own = draws_.transfer(replica, action);
      drawn.duration = times_factor(cost.duration, own);
      drawn.delivered = times_factor(cost.duration + cost.delivered, own) - drawn.duration;
    }
    if (kind.sends) {
      const double own = draws_.transfer(replica, compiled_.send_ids[i]);
      drawn.occupied = times_factor(cost.occupied, own);
      drawn.delivered = times_factor(cost.delivered, own);
    }
    return drawn;
  }

  /// Returns the number of the step's collective. Members of a collective of copies are several steps, which last
  /// equally long.
  std::int64_t collective(std::size_t i) const {
    const StepKind& kind = compiled_.kinds[compiled_.steps[i].kind];
    if (!kind.lasts_longest) return compiled_.action_ids[i];
    const Action& first = kind.actions.front();
    return NoiseDraws::sum_of_copies(first.stage, first.part);
  }

  const CompiledSchedule& compiled_;
  const std::vector<StepCost>& costs_;
  const NoiseSpec& noise_;
  NoiseDraws draws_;
  std::vector<std::vector<SimTime>> registers_;  ///< [replica][register]
  std::vector<SimTime> busy_;                    ///< [replica * ranks + rank]
};

void check(const NoiseSpec& noise) {
  if (noise.runs < 1) throw SpecError(fmt::format("noise: {} runs: give 1 or more", noise.runs));
  if (noise.replicas < 1) throw SpecError(fmt::format("noise: {} replicas: give 1 or more", noise.replicas));
}

}  // namespace

void require_drawable(const NoiseSpec& noise, std::int64_t actions) {
  const std::int64_t most = kMostNoisyActions / std::max<std::int64_t>(1, actions);
  if (noise.runs <= most) return;
  throw SpecError(
      fmt::format("noise: {} runs of {} actions are more than {} draws: {}", noise.runs, actions, kMostNoisyActions,
                  most > 0 ? fmt::format("give at most {} runs", most) : "simulate fewer micro-batches or replicas"));
}

NoisySteps noisy_steps(const NoiseSpec& noise, int ranks, int threads, const std::function<NoisyRun(int)>& timed) {
  check(noise);
  const NoisyRun without = timed(-1);
  NoisySteps result{.quiet_makespan = without.makespan,
                    .makespans = std::vector<SimTime>(static_cast<std::size_t>(noise.runs)),
                    .quiet_idle = {}};
  for (int rank = 0; rank < ranks; ++rank) result.quiet_idle.push_back(without.makespan - without.busy[rank]);
  const int workers =
      std::min(noise.runs, threads > 0 ? threads : std::max(1, int(std::thread::hardware_concurrency())));
  const auto work = [&](int worker) {
    std::vector<LongTime> idle(static_cast<std::size_t>(ranks));
    for (int run = worker; run < noise.runs; run += workers) {
      const NoisyRun totals = timed(run);
      result.makespans[run] = totals.makespan;
      for (std::size_t i = 0; i < totals.busy.size(); ++i) idle[i % idle.size()].add(totals.makespan - totals.busy[i]);
    }
    return idle;
  };
  std::vector<std::future<std::vector<LongTime>>> started;
  for (int worker = 1; worker < workers; ++worker) started.push_back(std::async(std::launch::async, work, worker));
  std::vector<LongTime> idle = work(0);
  for (auto& other : started) {
    const std::vector<LongTime> part = other.get();
    for (std::size_t r = 0; r < idle.size(); ++r) idle[r].add(part[r]);
  }
  for (const LongTime& sum : idle)
    result.mean_idle.push_back(sum.total() / (static_cast<double>(noise.runs) * noise.replicas));
  return result;
}

NoisySteps simulate_noise(const Schedule& lowered, const CostTable& costs, const NoiseSpec& noise, Sends sends,
                          int threads) {
  check(noise);
  require_drawable(noise, action_count(lowered) * noise.replicas);
  const NoiseShapes shapes = noise_shapes(noise);
  const CompiledSchedule compiled = compile(lowered, sends);
  const std::vector<StepCost> by_kind = step_costs(compiled, convert_costs(lowered, costs));
  const NoiseShapes quiet{};
  const NoiseSpec once{.replicas = 1};
  return noisy_steps(noise, compiled.ranks, threads, [&](int run) {
    return run < 0 ? Run(compiled, by_kind, once, quiet, 0).finish()
                   : Run(compiled, by_kind, noise, shapes, run).finish();
  });
}

SimTime percentile(std::vector<SimTime> times, double percent) {
  const auto count = static_cast<std::ptrdiff_t>(times.size());
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(percent / 100 * static_cast<double>(count)));
  const auto nth = times.begin() + std::clamp<std::ptrdiff_t>(rank - 1, 0, count - 1);
  std::ranges::nth_element(times, nth);
  return *nth;
}

Seconds mean_step(const NoisySteps& noisy) {
  LongTime sum;
  for (const SimTime makespan : noisy.makespans) sum.add(makespan);
  return sum.total() / static_cast<double>(noisy.makespans.size());
}

Seconds standard_deviation(const NoisySteps& noisy) {
  if (noisy.makespans.size() < 2) return Seconds{0};
  const double mean = mean_step(noisy).count();
  double squares = 0;
  for (const SimTime makespan : noisy.makespans) {
    const double off = to_seconds(makespan).count() - mean;
    squares += off * off;
  }
  return Seconds{std::sqrt(squares / static_cast<double>(noisy.makespans.size() - 1))};
}

double slowdown_ratio(const NoisySteps& noisy) {
  return noisy.quiet_makespan > SimTime{0} ? mean_step(noisy) / to_seconds(noisy.quiet_makespan) : 1;
}

}}  // namespace plumb::simulator
