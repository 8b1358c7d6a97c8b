#include "simulator/noise/noise.h"

#include <cmath>
#include <numbers>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "tests/simulator/support.h"
#include "traces/statistics.h"

namespace plumb::test {
namespace {

NoisySteps noisy_steps(const Schedule& schedule, const CostTable& costs, const NoiseSpec& noise) {
  return simulate_noise(schedule, costs, noise, Sends::kBuffered, 1);
}

std::vector<SimTime> idle_of(const Simulation& simulation) {
  std::vector<SimTime> idle;
  for (const SimTime busy : simulation.busy) idle.push_back(simulation.makespan - busy);
  return idle;
}

/// Returns m forwards in a row.
Schedule chain_of_forwards(int microbatches) {
  return make_schedule("forward-only", {.ranks = 1, .microbatches = microbatches});
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("a percentile is the smallest time that so many do not exceed") {
    const std::vector<SimTime> times = {SimTime{40}, SimTime{10}, SimTime{30}, SimTime{20}};
    CHECK(percentile(times, 50) == SimTime{20});
    CHECK(percentile(times, 51) == SimTime{30});
    CHECK(percentile(times, 100) == SimTime{40});
    CHECK(percentile(times, 0) == SimTime{10});
  }

  TEST_CASE("mean and deviation are those of the runs") {
    const NoisySteps noisy{.quiet_makespan = 2 * kSecond, .makespans = {2 * kSecond, 4 * kSecond}};
    CHECK(mean_step(noisy) == Seconds{3});
    CHECK(standard_deviation(noisy).count() == doctest::Approx(std::numbers::sqrt2));
    CHECK(slowdown_ratio(noisy) == 1.5);
  }

  TEST_CASE("no runs and no replicas are refused") {
    const Schedule schedule = lowered("1f1b", 2, 2);
    const CostTable costs = whole_costs(2, 1, 2);
    CHECK_THROWS_WITH_AS(noisy_steps(schedule, costs, {.runs = 0}), doctest::Contains("give 1 or more"), SpecError);
    CHECK_THROWS_WITH_AS(noisy_steps(schedule, costs, {.replicas = 0}), doctest::Contains("give 1 or more"), SpecError);
  }

  TEST_CASE("more draws than an afternoon has time for are refused with the most runs") {
    const Schedule schedule = lowered("1f1b", 2, 512);
    CHECK_THROWS_WITH_AS(noisy_steps(schedule, whole_costs(2, 1, 2), {.runs = 1'000'000}),
                         doctest::Contains("give at most 262016 runs"), SpecError);
    require_drawable({.runs = 1 << 20}, 1 << 10);
    CHECK_THROWS_WITH_AS(require_drawable({.runs = 1}, std::int64_t{1} << 31), doctest::Contains("simulate fewer"),
                         SpecError);
  }

  TEST_CASE("runs may last longer together than a timeline can") {
    // 20 runs of 10^6 s; a timeline ends at 9.2e6 s.
    const NoisySteps noisy = noisy_steps(chain_of_forwards(1), whole_costs(1, 1e6, 1), {.runs = 20});
    CHECK(mean_step(noisy) == Seconds{1e6});
  }
}

TEST_SUITE("property") {
  TEST_CASE("without variation every run is the simulation, to the picosecond, however many replicas") {
    for (const bool data_parallel : {false, true}) {
      for (const Schedule& plain : all_lowered(4, 6, 1)) {
        Schedule schedule = plain;
        if (data_parallel) {
          if (plain.name != "1f1b" && plain.name != "gpipe") continue;
          schedule =
              lower(make_schedule(plain.name, {.ranks = 4, .microbatches = 6}), {.data = {.enabled = true, .zero = 3}});
        }
        CAPTURE(schedule.name);
        const CostTable costs = random_costs(schedule, 3);
        for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
          const Simulation quiet = simulate(schedule, costs, {.sends = sends, .record_timeline = false});
          const NoisySteps noisy = simulate_noise(schedule, costs, {.runs = 2, .replicas = 3}, sends);
          CHECK(noisy.quiet_makespan == quiet.makespan);
          CHECK(noisy.makespans == std::vector<SimTime>(2, quiet.makespan));
          CHECK(noisy.quiet_idle == idle_of(quiet));
          CHECK(slowdown_ratio(noisy) == doctest::Approx(1).epsilon(1e-15));
          for (std::size_t r = 0; r < quiet.busy.size(); ++r)
            CHECK(noisy.mean_idle[r].count() == doctest::Approx(to_seconds(noisy.quiet_idle[r]).count()));
        }
      }
    }
  }

  TEST_CASE("a seed repeats its runs, on any number of threads; another seed does not") {
    const Schedule schedule = lowered("interleaved", 4, 8, 2);
    const CostTable costs = whole_costs(8, 1, 2, 0.1);
    const NoiseSpec noise{.cv = 0.1, .rank_cv = 0.05, .communication_cv = 0.2, .runs = 50, .seed = 5, .replicas = 2};
    const NoisySteps once = simulate_noise(schedule, costs, noise, Sends::kBuffered, 1);
    const NoisySteps again = simulate_noise(schedule, costs, noise, Sends::kBuffered, 3);
    CHECK(once.makespans == again.makespans);
    CHECK(once.mean_idle == again.mean_idle);
    NoiseSpec other = noise;
    other.seed = 6;
    CHECK(noisy_steps(schedule, costs, other).makespans != once.makespans);
    NoiseSpec more = noise;
    more.runs = 70;
    std::vector<SimTime> first = noisy_steps(schedule, costs, more).makespans;
    first.resize(50);
    CHECK(first == once.makespans);  // a run depends on its number, not on how many there are
  }

  TEST_CASE("percentiles ascend, and with mean 1 on every action the mean step is longer than the quiet one") {
    const Schedule schedule = lowered("1f1b", 8, 16);
    const NoisySteps noisy = noisy_steps(schedule, whole_costs(8, 1, 2), {.cv = 0.1, .runs = 400});
    CHECK(percentile(noisy.makespans, 50) <= percentile(noisy.makespans, 95));
    CHECK(percentile(noisy.makespans, 95) <= percentile(noisy.makespans, 99));
    // Maxima of sums are convex, so Jensen's inequality puts the mean above; the runs' own error is far below.
    CHECK(mean_step(noisy) - 5 * standard_deviation(noisy) / std::sqrt(400.0) > to_seconds(noisy.quiet_makespan));
  }

  TEST_CASE("costs times k are noisy steps times k, but for the rounding of each draw") {
    const Schedule schedule = lowered("zb-h1", 4, 8);
    constexpr int kFactor = 8;
    const auto costs = [](double scale) {
      return chunk_cost_table(4, {.forward = {Seconds{scale}},
                                  .input_grad = {Seconds{1.5 * scale}},
                                  .weight_grad = {Seconds{0.5 * scale}},
                                  .hop_latency = Seconds{0.25 * scale}});
    };
    const NoiseSpec noise{.cv = 0.2, .communication_cv = 0.3, .runs = 20};
    const std::vector<SimTime> once = noisy_steps(schedule, costs(1), noise).makespans;
    const std::vector<SimTime> times_k = noisy_steps(schedule, costs(kFactor), noise).makespans;
    for (std::size_t i = 0; i < once.size(); ++i) {
      const SimTime off = times_k[i] - kFactor * once[i];
      CHECK(std::abs(off.count()) <= kFactor * action_count(schedule));
    }
  }

  TEST_CASE("one rank's actions in a row last their sum on average, with sqrt(m) times the deviation of one") {
    constexpr int kMicrobatches = 25;
    constexpr int kRuns = 4000;
    constexpr double kCv = 0.2;
    const Schedule schedule = chain_of_forwards(kMicrobatches);
    for (const Distribution d : {Distribution::kLognormal, Distribution::kNormal, Distribution::kGamma}) {
      CAPTURE(distribution_name(d));
      const NoisySteps noisy =
          noisy_steps(schedule, whole_costs(1, 1, 2), {.cv = kCv, .distribution = d, .runs = kRuns});
      const double deviation = kCv * std::sqrt(kMicrobatches);
      CHECK(std::abs(mean_step(noisy).count() - kMicrobatches) < 5 * deviation / std::sqrt(kRuns));
      CHECK(standard_deviation(noisy).count() == doctest::Approx(deviation).epsilon(0.06));  // 5 / sqrt(2 * 4000)
      CHECK(noisy.mean_idle[0] == Seconds{0});  // a rank alone waits for nobody
    }
  }

  TEST_CASE("a rank's own factor is the same for all its actions, so that it does not average out") {
    constexpr int kMicrobatches = 25;
    const NoisySteps noisy = noisy_steps(chain_of_forwards(kMicrobatches), whole_costs(1, 1, 2),
                                         {.rank_cv = 0.1, .distribution = Distribution::kNormal, .runs = 4000});
    CHECK(standard_deviation(noisy).count() == doctest::Approx(0.1 * kMicrobatches).epsilon(0.06));
  }

  TEST_CASE("replicas wait for the slowest of them: two normal ones for cv / sqrt(pi) of a step") {
    // The larger of two normal numbers is 1 / sqrt(pi) deviations above their mean, on average.
    constexpr double kCv = 0.1;
    constexpr int kRuns = 20'000;
    const Schedule schedule = lower(parse_schedule("0F0 0B0\n"), {.data = {.enabled = true}});
    const NoisySteps noisy =
        noisy_steps(schedule, whole_costs(1, 0, 1),
                    {.cv = kCv, .distribution = Distribution::kNormal, .runs = kRuns, .replicas = 2});
    CHECK(slowdown_ratio(noisy) ==
          doctest::Approx(1 + kCv / std::sqrt(std::numbers::pi)).epsilon(5 * kCv / std::sqrt(kRuns)));
    CHECK(noisy.mean_idle[0].count() == doctest::Approx(kCv / std::sqrt(std::numbers::pi)).epsilon(0.05));
  }

  TEST_CASE("buckets that start inside the backward do so in every run, and meet those of the other replicas") {
    const Schedule schedule = parse_schedule("0F0 0REDUCE_GRAD 0REDUCE_GRAD/1 0B0 0OPTIMIZER_STEP\n");
    CostTable costs = whole_costs(1, 1, 4);
    costs.stages[0].segments[static_cast<std::size_t>(Op::kReduceGrad)] = {{Segment{.seconds = Seconds{2}}}};
    costs.stages[0].bucket_offsets = {Seconds{1}, Seconds{4}};
    const Simulation quiet = simulate(schedule, costs, {.validate = false});
    const NoisySteps same = noisy_steps(schedule, costs, {.runs = 2, .replicas = 3});
    CHECK(same.makespans == std::vector<SimTime>(2, quiet.makespan));
    const NoisySteps noisy = noisy_steps(schedule, costs, {.cv = 0.1, .runs = 500, .replicas = 4});
    CHECK(slowdown_ratio(noisy) > 1);
  }

  TEST_CASE("noise of communication alone leaves a schedule over free links as it is") {
    const Schedule schedule = lowered("1f1b", 4, 8);
    const NoiseSpec noise{.communication_cv = 0.5, .runs = 3};
    const NoisySteps free = noisy_steps(schedule, whole_costs(4, 1, 2), noise);
    CHECK(free.makespans == std::vector<SimTime>(3, free.quiet_makespan));
    const NoisySteps hops = noisy_steps(schedule, whole_costs(4, 1, 2, 0.5), noise);
    CHECK(hops.makespans[0] != hops.quiet_makespan);
  }

  TEST_CASE("copies of a stage still end their common reduction together") {
    // Were they drawn apart, one rank's optimizer step would start earlier, and the chain of costs below would differ:
    // every duration is 0 but that of the reduction, so the makespan is that of one draw for each model part.
    const Schedule schedule = lowered("chimera", 2, 2);
    CostTable costs = chunk_cost_table(stage_count(schedule), {.forward = {Seconds{0}},
                                                               .input_grad = {Seconds{0}},
                                                               .weight_grad = {Seconds{0}},
                                                               .reduce_grad = {Seconds{1}}});
    const NoisySteps noisy = noisy_steps(schedule, costs, {.communication_cv = 0.3, .runs = 2000});
    // Two reductions one after the other on each rank, the same for both ranks: mean 2, deviation 0.3 sqrt(2).
    CHECK(to_seconds(noisy.quiet_makespan) == Seconds{2});
    CHECK(std::abs(mean_step(noisy).count() - 2) < 5 * 0.3 * std::numbers::sqrt2 / std::sqrt(2000.0));
  }
}

}  // namespace plumb::test
