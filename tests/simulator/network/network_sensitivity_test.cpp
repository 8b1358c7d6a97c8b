#include "simulator/network/network_sensitivity.h"

#include <functional>
#include <numeric>

#include <doctest/doctest.h>

#include "simulator/network/placement/place_inner.h"
#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

/// Costs of about a second each, so different that nothing ties; messages of about a second at 1 kB/s.
CostTable untied_flow_costs(const Schedule& schedule, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto seconds = [&random](double scale) {
    return Seconds{scale * (0.5 + static_cast<double>(random() % 1'000'000'007) / 1e9)};
  };
  CostTable costs;
  costs.stages.resize(schedule.stages.size());
  for (StageCosts& stage : costs.stages) {
    for (auto& by_part : stage.segments) {
      by_part = {{Segment{.seconds = seconds(1)},
                  Segment{.kind = Segment::Kind::kCollective, .seconds = seconds(0.4), .bytes = 300}}};
    }
    for (const Op op : {Op::kOffload, Op::kReload, Op::kEvict, Op::kLoad})
      stage.segments[static_cast<std::size_t>(op)] = {{Segment{.seconds = seconds(2)}}};
    stage.memory.forward_bytes = 1000 + static_cast<std::int64_t>(random() % 1000);
    stage.activation_message_bytes = 500 + static_cast<std::int64_t>(random() % 1000);
    stage.gradient_message_bytes = 500 + static_cast<std::int64_t>(random() % 1000);
  }
  costs.default_link = {.latency = seconds(0.05), .bytes_per_second = 1234.5};
  return costs;
}

/// The costs that are made longer in proportion, one kind of them at a time; `capacity` makes links narrower.
struct Scaling {
  std::function<bool(Op, const Segment&, int stage)> lengthens = [](Op, const Segment&, int) { return false; };
  bool latency = false;
  bool bandwidth = false;
  bool capacity = false;
};

CostTable scaled(CostTable costs, const Scaling& what, double factor) {
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    for (std::size_t op = 0; op < costs.stages[stage].segments.size(); ++op) {
      for (auto& segments : costs.stages[stage].segments[op]) {
        for (Segment& segment : segments) {
          if (what.lengthens(static_cast<Op>(op), segment, static_cast<int>(stage))) segment.seconds *= factor;
        }
      }
    }
  }
  if (what.latency) costs.default_link.latency *= factor;
  if (what.bandwidth) costs.default_link.bytes_per_second /= factor;
  return costs;
}

NetworkSpec scaled(NetworkSpec network, const Scaling& what, double factor) {
  if (what.capacity) {
    for (NetworkLink& link : network.links) link.bytes_per_second /= factor;
  }
  return network;
}

SimTime makespan(const Schedule& schedule, const CostTable& costs, const NetworkSpec& network) {
  return simulate(schedule, costs, network, {.record_timeline = false}, Replicas::kUnfolded).makespan;
}

bool is_compute_segment(Op op, const Segment& segment) {
  return is_compute(op) && segment.kind == Segment::Kind::kCompute;
}

bool is_inner_segment(Op op, const Segment& segment) {
  return is_compute(op) && segment.kind == Segment::Kind::kCollective;
}

/// Compares central differences of all kinds of costs with the gradient. Returns how many were compared.
int compare(const Schedule& schedule, const CostTable& costs, const NetworkSpec& network) {
  const NetworkGradient gradient = *network_gradient(schedule, costs, network, Sends::kBuffered, Replicas::kUnfolded);
  const Sensitivity s = sensitivity_of(schedule, costs, gradient);
  CHECK(gradient.makespan == makespan(schedule, costs, network));
  // Rates are found to about 1e-12, and each end is rounded up to a picosecond.
  CHECK(sum_of(s) == doctest::Approx(to_seconds(gradient.makespan).count()).epsilon(1e-9));
  constexpr double kStep = 1e-6;
  int compared = 0;
  const auto check = [&](const Scaling& what, Seconds told) {
    const auto time = [&](double factor) {
      return makespan(schedule, scaled(costs, what, factor), scaled(network, what, factor));
    };
    const double derivative = to_seconds(time(1 + kStep) - time(1 - kStep)).count() / (2 * kStep);
    // Each of up to a few hundred ends is rounded to a picosecond: 1e-12 / 1e-6 each.
    CHECK(derivative == doctest::Approx(told.count()).epsilon(5e-4).scale(1));
    ++compared;
  };
  for (int stage = 0; stage < stage_count(schedule); ++stage) {
    check({.lengthens = [stage](Op op, const Segment& segment,
                                int of) { return of == stage && is_compute_segment(op, segment); }},
          s.compute_by_stage[stage]);
  }
  check({.lengthens = [](Op op, const Segment& segment, int) { return is_inner_segment(op, segment); }},
        s.group_collectives);
  check({.lengthens = [](Op op, const Segment&, int) { return op == Op::kUnshard || op == Op::kSendWeights; }},
        s.unshard);
  check({.lengthens = [](Op op, const Segment&, int) { return op == Op::kReduceGrad || op == Op::kSendWeightGrad; }},
        s.reduction);
  check({.lengthens = [](Op op, const Segment&, int) { return is_move(op); }}, s.moves);
  check({.latency = true}, s.latency);
  check({.bandwidth = true}, s.bandwidth);
  check({.capacity = true}, s.capacity);
  return compared;
}

}  // namespace

TEST_CASE("what a link holds back grows with the link's width, not with the price") {
  // gpipe on two ranks: F, message, F, B, message, B; each message of 1 s alone takes 2 s over a link of half its rate.
  const Schedule schedule = lowered("gpipe", 2, 1);
  CostTable costs = whole_costs(2, 1, 1);
  costs.default_link.bytes_per_second = 1e9;
  for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 1'000'000'000;
  const Sensitivity s = sensitivity_of(schedule, costs, *network_gradient(schedule, costs, one_trunk(schedule, 0.5e9)));
  CHECK(s.compute_by_stage[0].count() == doctest::Approx(2));
  CHECK(s.compute_by_stage[1].count() == doctest::Approx(2));
  CHECK(s.bandwidth.count() == doctest::Approx(0));
  CHECK(s.capacity.count() == doctest::Approx(4));
  REQUIRE(s.shared_links.size() == 1);
  CHECK(s.shared_links[0].kind == "trunk");
}

TEST_CASE("where nothing shares the sensitivities are those of the critical path") {
  for (const Schedule& schedule : all_lowered(4, 6, 1)) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      CAPTURE(schedule.name);
      const CostTable costs = untied_flow_costs(schedule, seed);
      const Sensitivity path = sensitivity_of(schedule, costs, simulate(schedule, costs).critical_path);
      const Sensitivity events = sensitivity_of(
          schedule, costs,
          *network_gradient(schedule, costs, private_links(schedule, costs), Sends::kBuffered, Replicas::kUnfolded));
      const auto equal = [](Seconds a, Seconds b) {
        return a.count() == doctest::Approx(b.count()).epsilon(1e-9).scale(1);
      };
      for (int stage = 0; stage < stage_count(schedule); ++stage)
        CHECK(equal(events.compute_by_stage[stage], path.compute_by_stage[stage]));
      CHECK(equal(events.group_collectives, path.group_collectives));
      CHECK(equal(events.bandwidth, path.bandwidth));
      CHECK(equal(events.latency, path.latency));
      CHECK(equal(events.moves, path.moves));
      CHECK(events.capacity == Seconds{0});
    }
  }
}

TEST_SUITE("property") {
  TEST_CASE("with shared links sensitivities add up to the makespan and equal finite differences away from ties") {
    int compared = 0;
    for (const Schedule& schedule : all_lowered(4, 6, 1)) {
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        CAPTURE(schedule.name);
        CAPTURE(seed);
        NetworkSpec network = one_trunk(schedule, 1600);
        for (auto& routes : network.move_routes) routes.assign(schedule.stages.size(), 0);
        compared += compare(schedule, untied_flow_costs(schedule, seed), network);
      }
    }
    CHECK(compared > 300);
  }

  TEST_CASE(
      "so they do with gradient sums, gathers and collectives inside actions of unlike replicas, some slowed down") {
    for (const int zero : {0, 1, 3}) {
      for (const double slowdown : {0.0, 0.3}) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
          CAPTURE(zero);
          CAPTURE(slowdown);
          CAPTURE(seed);
          const Schedule schedule =
              lower(make_schedule("1f1b", {.ranks = 3, .microbatches = 5}), {.data = {.enabled = true, .zero = zero}});
          CostTable costs = untied_flow_costs(schedule, seed);
          for (StageCosts& stage : costs.stages) {
            for (const Op op : {Op::kUnshard, Op::kReduceGrad}) {
              auto& segments = stage.segments[static_cast<std::size_t>(op)].front();
              segments.erase(segments.begin());
              segments.front().group = Group::kData;
              segments.front().seconds *= 5;
              segments.front().bytes = 4000;
            }
          }
          NetworkSpec network{.links = {{"left", 900}, {"right", 1300}, {"middle", 2100}},
                              .routes = {{.uses = {{0, 1}, {2, 1}}},
                                         {.uses = {{1, 1}, {2, 1}}},
                                         {.uses = {{0, 1}, {1, 0.5}}, .weight = 2}},
                              .replicas = 2,
                              .speeds = {1, 0.9, 1, 1, 1, 0.7},
                              .collective_slowdown = slowdown};
          network.activation_route = {0, 0, 0, 1, 1, 1};
          network.gradient_route = network.activation_route;
          for (int stage = 0; stage < 3; ++stage) {
            network.inner.push_back({.stage = stage, .replicas = {0, 1}, .route = 2});
            for (const Op op : {Op::kUnshard, Op::kReduceGrad})
              network.collectives.push_back({.op = op, .stage = stage, .replicas = {0, 1}, .route = 2});
          }
          CHECK(compare(schedule, costs, network) > 0);
        }
      }
    }
  }

  TEST_CASE("growth is what a simulation of the other figures tells, to first order") {
    const Schedule schedule = lowered("1f1b", 4, 8);
    const CostTable costs = untied_flow_costs(schedule, 7);
    const NetworkSpec network = one_trunk(schedule, 1600);
    const NetworkGradient gradient = *network_gradient(schedule, costs, network);
    const Scaling all{
        .lengthens = [](Op op, const Segment&, int stage) { return op == Op::kForward && stage % 2 == 0; },
        .latency = true,
        .capacity = true};
    const double factor = 1 + 1e-6;
    const std::optional<Seconds> told =
        growth(gradient, schedule, scaled(costs, all, factor), scaled(network, all, factor));
    REQUIRE(told);
    const SimTime after = makespan(schedule, scaled(costs, all, factor), scaled(network, all, factor));
    CHECK(told->count() == doctest::Approx(to_seconds(after - gradient.makespan).count()).epsilon(1e-3));
  }
}

}  // namespace plumb::test
