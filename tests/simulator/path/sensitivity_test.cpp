#include "simulator/path/sensitivity.h"

#include <cstdlib>
#include <numeric>
#include <random>

#include <doctest/doctest.h>

#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

/// Costs of about a second each, so different that no two paths tie.
CostTable untied_costs(const Schedule& schedule, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto seconds = [&random](double scale) {
    return Seconds{scale * (0.5 + static_cast<double>(random() % 1'000'000'007) / 1e9)};
  };
  CostTable costs;
  costs.stages.resize(schedule.stages.size());
  for (StageCosts& stage : costs.stages) {
    for (auto& by_part : stage.segments) {
      by_part = {{Segment{.seconds = seconds(1)},
                  Segment{.kind = Segment::Kind::kCollective, .seconds = seconds(0.1), .group = Group::kTensor}}};
    }
    stage.activation_message_bytes = 1000;
    stage.gradient_message_bytes = 1500;
  }
  costs.default_link = {.latency = seconds(0.05), .bytes_per_second = 12345};
  return costs;
}

/// Returns costs in which every segment of one kind on one stage (-1 for all) is a little longer.
CostTable longer(CostTable costs, Segment::Kind kind, int stage, double factor) {
  for (int s = 0; s < static_cast<int>(costs.stages.size()); ++s) {
    if (stage >= 0 && s != stage) continue;
    for (const Op op :
         {Op::kForward, Op::kBackward, Op::kInputGrad, Op::kWeightGrad, Op::kRecompute, Op::kOptimizerStep}) {
      for (auto& segments : costs.stages[s].segments[static_cast<std::size_t>(op)]) {
        for (Segment& segment : segments) {
          if (segment.kind == kind) segment.seconds *= factor;
        }
      }
    }
  }
  return costs;
}

}  // namespace

TEST_CASE("1F1B's step is (m + p - 1)(F + B) of computing, and what its messages add") {
  const Schedule schedule = lowered("1f1b", 4, 8);
  const CostTable costs = whole_costs(4, 1, 2, 0.25);
  const Simulation result = simulate(schedule, costs);
  const Sensitivity s = sensitivity_of(schedule, costs, result.critical_path);
  CHECK(sum_of(s) == doctest::Approx(to_seconds(result.makespan).count()));
  CHECK(std::accumulate(s.compute_by_stage.begin(), s.compute_by_stage.end(), Seconds{0}).count() ==
        doctest::Approx(33));
  CHECK(s.bandwidth == Seconds{0});
  CHECK(s.latency.count() == doctest::Approx(to_seconds(result.makespan).count() - 33));
  CHECK(sensitivity_of(schedule, costs, {}).latency == Seconds{0});
}

TEST_CASE("collectives are told apart by group and kind, messages by link, and both add up to their sums") {
  const Schedule schedule =
      lower(make_schedule("1f1b", {.ranks = 3, .microbatches = 4}), {.data = {.enabled = true, .zero = 1}});
  CostTable costs = untied_costs(schedule, 5);
  for (StageCosts& stage : costs.stages) {
    const auto collective = [](Group group, CollectiveKind kind, double seconds) {
      return Segment{
          .kind = Segment::Kind::kCollective, .seconds = Seconds{seconds}, .group = group, .collective = kind};
    };
    stage.segments[static_cast<std::size_t>(Op::kForward)][0].push_back(
        collective(Group::kExpert, CollectiveKind::kAllToAll, 0.2));
    stage.segments[static_cast<std::size_t>(Op::kReduceGrad)] = {
        {collective(Group::kData, CollectiveKind::kReduceScatter, 0.7)}};
    stage.segments[static_cast<std::size_t>(Op::kUnshard)] = {
        {collective(Group::kData, CollectiveKind::kAllGather, 0.3)}};
  }
  const Simulation result = simulate(schedule, costs);
  const Sensitivity s = sensitivity_of(schedule, costs, result.critical_path);
  Seconds inside{0};
  Seconds data{0};
  for (const CollectiveSensitivity& of : s.collectives) {
    (of.group == Group::kData ? data : inside) += of.seconds;
    CHECK((of.group == Group::kExpert) == (of.kind == CollectiveKind::kAllToAll));
  }
  CHECK(inside.count() == doctest::Approx(s.group_collectives.count()));
  CHECK(data.count() == doctest::Approx((s.unshard + s.reduction).count()));
  CHECK(data > Seconds{0});
  Seconds bandwidth{0};
  Seconds latency{0};
  for (const LinkSensitivity& link : s.links) {
    CHECK(std::abs(link.source_rank - link.destination_rank) == 1);  // neighbours of a pipeline
    bandwidth += link.bandwidth;
    latency += link.latency;
  }
  CHECK(bandwidth.count() == doctest::Approx(s.bandwidth.count()));
  CHECK(latency.count() == doctest::Approx(s.latency.count()));
}

TEST_SUITE("property") {
  TEST_CASE("sensitivities add up to the makespan and equal finite differences away from ties") {
    constexpr double kStep = 1e-6;
    int compared = 0;
    for (const Schedule& schedule : all_lowered(4, 6, 1)) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CAPTURE(schedule.name);
        CAPTURE(seed);
        const CostTable costs = untied_costs(schedule, seed);
        const Simulation before = simulate(schedule, costs);
        const Sensitivity s = sensitivity_of(schedule, costs, before.critical_path);
        CHECK(sum_of(s) == doctest::Approx(to_seconds(before.makespan).count()).epsilon(1e-12));
        const auto check = [&](const CostTable& slower, Seconds told) {
          const SimTime after = simulate(schedule, slower, {.record_timeline = false}).makespan;
          const double derivative = to_seconds(after - before.makespan).count() / kStep;
          // Each of up to a few hundred costs on the path is rounded to a picosecond: 1e-12 / 1e-6 each; and a link's
          // time is rounded once more.
          CHECK(derivative == doctest::Approx(told.count()).epsilon(5e-4).scale(1));
          ++compared;
        };
        for (int stage = 0; stage < stage_count(schedule); ++stage)
          check(longer(costs, Segment::Kind::kCompute, stage, 1 + kStep), s.compute_by_stage[stage]);
        check(longer(costs, Segment::Kind::kCollective, -1, 1 + kStep), s.group_collectives);
        CostTable later = costs;
        later.default_link.latency *= 1 + kStep;
        check(later, s.latency);
        CostTable thinner = costs;
        thinner.default_link.bytes_per_second /= 1 + kStep;
        check(thinner, s.bandwidth);
      }
    }
    CHECK(compared > 300);
  }
}

}  // namespace plumb::test
