#include "planner/evaluate/host_offload.h"

#include <doctest/doctest.h>

#include "planner/search/evaluate_plan.h"
#include "planner/search/plan.h"
#include "planner/search/search.h"
#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

/// 4 devices a node; their host has 100 GiB at 100 GB/s, each a link of 10 GB/s.
ClusterSpec hosted(int devices) {
  ClusterSpec cluster = round_cluster(devices);
  cluster.host = HostSpec{
      .memory_bytes = std::int64_t{100} << 30, .memory_bytes_per_second = 100e9, .device_bytes_per_second = 10e9};
  return cluster;
}

constexpr std::int64_t kHostedParameters = 1'000'000'000;

}  // namespace

TEST_CASE("an offloaded step lasts what the backward does not hide, then the slower of update and way up") {
  const TrainingSpec training{.global_batch = 8, .sequence = 512};
  const auto traffic = static_cast<double>(optimizer_traffic_per_parameter(training));
  // 2 bytes a weight down and up at 10 GB/s: 0.2 s each; four devices share 100 GB/s.
  const double update = 4 * traffic * 1e9 / 100e9;
  CHECK(offloaded_step(hosted(4), training, kHostedParameters, Seconds{1}).count() ==
        doctest::Approx(update).epsilon(1e-12));
  CHECK(offloaded_step(hosted(4), training, kHostedParameters, Seconds{0.05}).count() ==
        doctest::Approx(0.15 + update).epsilon(1e-12));
  ClusterSpec fast = hosted(4);
  fast.host->memory_bytes_per_second = 1e15;
  CHECK(offloaded_step(fast, training, kHostedParameters, Seconds{1}).count() == doctest::Approx(0.2).epsilon(1e-12));
  CHECK(host_move_time(hosted(4), 5'000'000'000).count() == doctest::Approx(0.5).epsilon(1e-12));
}

TEST_CASE("a cluster without host cannot offload, and says what to add") {
  check_refused<SpecError>([] { host_move_time(round_cluster(4), 1); }, "round", "memory_gib");
  const Plan plan{.model = small_gpt(),
                  .cluster = round_cluster(4),
                  .training = {.global_batch = 8, .sequence = 512},
                  .layout = {.data = 4, .offload = {.optimizer = true}}};
  check_refused<SpecError>([&] { evaluate(plan); }, "round", "leave offload out");
}

TEST_CASE("offloading the optimizer takes its state off the device and costs time") {
  Plan plan{.model = small_gpt(),
            .cluster = hosted(4),
            .training = {.global_batch = 8, .sequence = 512},
            .layout = {.data = 2, .pipeline = 2, .zero = 1}};
  const Evaluation here = evaluate(plan);
  plan.layout.offload.optimizer = true;
  const Evaluation away = evaluate(plan);
  REQUIRE(here.infeasible.empty());
  REQUIRE(away.infeasible.empty());
  const std::vector<std::int64_t> in_host = host_optimizer_bytes_by_stage(away.priced);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    CHECK(away.costs.stages[stage].memory.optimizer_bytes == 0);
    CHECK(in_host[stage] == here.costs.stages[stage].memory.optimizer_bytes);
    CHECK(here.simulation.peak_memory_bytes[stage] - away.simulation.peak_memory_bytes[stage] == in_host[stage]);
  }
  CHECK(step_time(away.simulation) > step_time(here.simulation));
}

TEST_CASE("a step in a host of any speed is no faster than the device's own") {
  ClusterSpec cluster = hosted(4);
  cluster.host->memory_bytes_per_second = cluster.host->device_bytes_per_second = 1e18;
  Plan plan{.model = small_gpt(),
            .cluster = cluster,
            .training = {.global_batch = 4, .sequence = 512},
            .layout = {.data = 4}};
  const SimTime on_device = evaluate(plan).simulation.makespan;
  plan.layout.offload.optimizer = true;
  CHECK(evaluate(plan).simulation.makespan == on_device);
}

TEST_CASE("offloaded activations wait in the host, and only what compute does not hide costs time") {
  Plan plan{.model = small_gpt(),
            .cluster = hosted(4),
            .training = {.global_batch = 32, .sequence = 512},
            .layout = {.pipeline = 4}};
  const Evaluation here = evaluate(plan);
  plan.layout.offload.activations = true;
  const Evaluation slow = evaluate(plan);
  plan.cluster.host->device_bytes_per_second = 1e15;
  const Evaluation free = evaluate(plan);
  // 1F1B holds 4 micro-batches on the first of 4 ranks; 3 stay, unless another moment is the fullest then.
  const auto saved = [&](const Evaluation& other) {
    return here.simulation.peak_memory_bytes[0] - other.simulation.peak_memory_bytes[0];
  };
  const std::int64_t one = here.costs.stages[0].memory.forward_bytes;
  CHECK(saved(free) > 0);
  CHECK(saved(free) <= one);
  CHECK(to_seconds(free.simulation.makespan).count() ==
        doctest::Approx(to_seconds(here.simulation.makespan).count()).epsilon(1e-6));
  CHECK(slow.simulation.makespan > free.simulation.makespan);
}

TEST_CASE("a node's host must hold what all its devices offload") {
  const Schedule order = parse_schedule("0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n");
  CostTable costs;
  costs.stages.resize(1);
  costs.stages[0].memory.forward_bytes = 1000;
  const Layout layout{.data = 8, .offload = {.optimizer = true, .activations = true}};
  // Two of four activations stay, and the one whose backward comes next.
  const auto bytes = host_bytes_by_rank(costs, {5000}, layout, order);
  REQUIRE(bytes.size() == 1);
  CHECK(bytes[0] > 5000);
  CHECK(bytes[0] <= 5000 + 2 * 1000);
  ClusterSpec cluster = hosted(8);
  CHECK(!host_shortfall(cluster, layout, bytes));
  cluster.host->memory_bytes = 4 * bytes[0];  // four devices a node: exactly enough
  CHECK(!host_shortfall(cluster, layout, bytes));
  cluster.host->memory_bytes -= 1;
  CHECK(host_shortfall(cluster, layout, bytes)->find("offload less") != std::string::npos);
  CHECK(!host_shortfall(cluster, {.data = 8}, bytes));  // nothing is offloaded
}

TEST_CASE("a search offloads where that is faster, as it is where nothing fits otherwise") {
  const TrainingSpec training{.global_batch = 4, .sequence = 512};
  ClusterSpec cluster = hosted(1);
  const SearchResult roomy = found_layouts(small_gpt(), cluster, training, {}, {});
  REQUIRE(!roomy.ranked.empty());
  CHECK(roomy.ranked.front().layout.offload == Offload{});
  // 110 M parameters: 2 + 4 + 12 bytes each are 2 GB; without the 12 they fit into 1 GiB less a margin.
  cluster.device.memory_bytes = (std::int64_t{1} << 30) + (std::int64_t{1} << 28);
  const SearchResult tight = found_layouts(small_gpt(), cluster, training, {}, {});
  REQUIRE(!tight.ranked.empty());
  CHECK(tight.ranked.front().layout.offload.optimizer);
  cluster.host.reset();
  CHECK(found_layouts(small_gpt(), cluster, training, {}, {}).ranked.empty());
}

}  // namespace plumb::test
