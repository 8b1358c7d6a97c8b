#include "planner/calibrate/fit_cluster.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/price/collective/collective_price.h"
#include "planner/price/collective/nccl_point_to_point.h"
#include "planner/price/collective/nccl_tuning.h"
#include "planner/price/kernel/kernel_price.h"
#include "planner/search/evaluate_plan.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

constexpr NcclCalibration kTruth{
    .low_latency_launch = Seconds{12e-6}, .simple_launch = Seconds{30e-6}, .bandwidth_scale = 0.9};

/// The log that a machine with the constants of kTruth would print.
NcclTestsLog log_of(const ClusterSpec& cluster, std::optional<CollectiveKind> kind, GroupPlacement group) {
  const NcclMachine machine = *nccl_machine(cluster);
  NcclTestsLog log{.file = "a.log", .kind = kind, .group = group};
  for (int power = 10; power <= 30; power += 2) {
    const std::int64_t bytes = std::int64_t{1} << power;
    const NcclEstimate estimate =
        !kind ? nccl_send(machine, group, bytes) : nccl_choice(nccl_tuning(machine, group, *kind), bytes);
    const Seconds time = calibrated(kTruth, estimate);
    log.sizes.push_back({.bytes = bytes, .out_of_place = time, .in_place = time});
  }
  return log;
}

const FittedConstant& constant(const ClusterFit& fit, const std::string& path) {
  for (const FittedConstant& candidate : fit.constants) {
    if (candidate.path == path) return candidate;
  }
  FAIL(path << " was not fitted");
  return fit.constants.front();
}

Plan small_plan() {
  return {.model = preset_model("gpt2"),
          .cluster = preset_cluster("h100"),
          .training = {.global_batch = 32, .sequence = 1024},
          .layout = {.data = 8, .microbatch = 4}};
}

}  // namespace

TEST_CASE("constants that made the logs are found again, and the tables come out as measured") {
  ClusterSpec base = preset_cluster("h100:16");
  base.nccl->calibration = {};
  const GroupPlacement node{.ranks = 8, .nodes = 1, .ranks_per_node = 8};
  const GroupPlacement both{.ranks = 16, .nodes = 2, .ranks_per_node = 8};
  const ClusterEvidence evidence{
      .collectives = {log_of(base, CollectiveKind::kAllReduce, node),
                      log_of(base, CollectiveKind::kReduceScatter, both), log_of(base, std::nullopt, node)},
      .date = "2026-01-02"};
  const ClusterFit fit = fit_cluster(base, evidence);
  CHECK(constant(fit, "nccl.low_latency_launch_us").value == doctest::Approx(12));
  CHECK(constant(fit, "nccl.simple_launch_us").value == doctest::Approx(30));
  CHECK(constant(fit, "nccl.bandwidth_scale").value == doctest::Approx(0.9));
  CHECK(constant(fit, "nccl.bandwidth_scale").observations == 33);
  CHECK(*constant(fit, "nccl.bandwidth_scale").standard_error < 1e-9);
  CHECK(fit.cluster.nccl->calibration.bandwidth_scale == doctest::Approx(0.9));
  CHECK(fit.cluster.sources.at("nccl.simple_launch_us").find("2026-01-02: a.log") != std::string::npos);
  CHECK(fit.cluster.collective_tables.size() == 2);  // send/recv has none
  const CollectivePrices prices = collective_prices(fit.cluster, 8);
  CHECK(collective_time(prices, node, CollectiveKind::kAllReduce, 1 << 20).count() ==
        doctest::Approx(evidence.collectives[0].sizes[5].out_of_place.count()));
  // The file can be read again, and a second log of the same shape replaces the first.
  const ClusterSpec again = parse_cluster(to_json(fit.cluster).dump(), "again");
  CHECK(again.nccl->calibration.simple_launch.count() == doctest::Approx(30e-6));
  CHECK(fit_cluster(again, evidence).cluster.collective_tables.size() == 2);
}

TEST_CASE("a launch that the sizes say nothing of stays the cluster's, and one that they cannot tell is named") {
  ClusterSpec base = preset_cluster("h100:8");
  base.nccl->calibration = {.low_latency_launch = Seconds{7e-6}, .simple_launch = Seconds{9e-6}};
  NcclTestsLog log = log_of(base, CollectiveKind::kAllReduce, {.ranks = 8, .nodes = 1, .ranks_per_node = 8});
  std::erase_if(log.sizes, [](const TimedSize& size) { return size.bytes < (1 << 28); });
  for (TimedSize& size : log.sizes) size.out_of_place *= 1 - 1e7 / static_cast<double>(size.bytes);  // as if below 0
  const ClusterFit fit = fit_cluster(base, {.collectives = {log}, .date = "2026-01-02"});
  CHECK(fit.cluster.nccl->calibration.low_latency_launch == Seconds{7e-6});
  CHECK(fit.cluster.nccl->calibration.simple_launch == Seconds{0});
  CHECK(fit.constants.size() == 1);
  REQUIRE(fit.notes.size() == 2);
  CHECK(fit.notes[0] == "nccl.low_latency_launch_us: no size was moved by that protocol, so it stays 7");
  CHECK(fit.notes[1] ==
        "nccl.simple_launch_us: the sizes measured do not tell it from the bandwidth, so it is 0; measure smaller ones "
        "too");
}

TEST_CASE("a log of times that do not grow with the size is kept as a table, and fits no constant") {
  ClusterSpec base = preset_cluster("h100:8");
  NcclTestsLog log = log_of(base, CollectiveKind::kAllReduce, {.ranks = 8, .nodes = 1, .ranks_per_node = 8});
  double time_ms = 80;
  for (TimedSize& size : log.sizes) size.out_of_place = size.in_place = Seconds{1e-3 * time_ms--};
  const ClusterFit fit = fit_cluster(base, {.collectives = {log}, .date = "2026-01-02"});
  CHECK(fit.cluster.nccl->calibration == base.nccl->calibration);
  CHECK(fit.constants.empty());
  CHECK(fit.cluster.collective_tables.size() == 1);
  REQUIRE(fit.notes.size() == 1);
  CHECK(fit.notes[0].find("larger messages do not take longer") != std::string::npos);
}

TEST_CASE("logs of another machine are refused") {
  ClusterSpec base = preset_cluster("h100");
  const GroupPlacement sixteen{.ranks = 16, .nodes = 1, .ranks_per_node = 16};
  check_refused<SpecError>(
      [&] { fit_cluster(base, {.collectives = {log_of(base, CollectiveKind::kAllReduce, sixteen)}}); }, "a.log",
      "16 ranks on a node");
  NcclTestsLog fast = log_of(base, CollectiveKind::kAllReduce, {.ranks = 8, .nodes = 1, .ranks_per_node = 8});
  for (TimedSize& size : fast.sizes) size.out_of_place /= 3;
  check_refused<SpecError>([&] { fit_cluster(base, {.collectives = {fast}}); }, "a.log", "mapping is wrong");
  base.nccl.reset();
  const ClusterFit tables = fit_cluster(base, {.collectives = {fast}});
  CHECK(tables.constants.empty());
  CHECK(tables.notes.size() == 1);
  CHECK(tables.cluster.collective_tables.size() == 1);
}

TEST_CASE("measured products give samples and the efficiency that they reach") {
  ClusterSpec base = preset_cluster("a100");
  base.device.gemm_efficiency = 0.6;
  const KernelPrices prices = kernel_prices(base, {}, 1);
  GemmTable table{.file = "g.csv"};
  for (const std::int64_t size : {2048, 4096, 8192}) {
    const KernelCall call = kernel_call(KernelKind::kGemm, {size, size, size, 1, 0});
    table.samples.push_back(
        {.kernel = "gemm", .shape = call.shape, .median = roofline_time(prices, call), .repeats = 1});
  }
  base.device.gemm_efficiency = 0.79;
  const ClusterFit fit = fit_cluster(base, {.gemms = {table}});
  CHECK(constant(fit, "device.gemm_efficiency").value == doctest::Approx(0.6));
  CHECK(constant(fit, "device.gemm_efficiency").observations == 3);
  CHECK(constant(fit, "device.gemm_efficiency").residual_pct < 1e-6);
  CHECK(fit.cluster.samples.size() == 3);
  for (KernelSample& sample : table.samples) sample.median /= 2;
  check_refused<SpecError>([&] { fit_cluster(base, {.gemms = {table}}); }, "g.csv", "mapping is wrong");
  // A product that memory bounds, and one that leaves most of the device idle, say nothing of the efficiency.
  GemmTable thin{.file = "thin.csv"};
  thin.samples = {{.kernel = "gemm", .shape = {8192, 8192, 16, 1, 0}, .median = Seconds{1e-4}, .repeats = 1},
                  {.kernel = "gemm", .shape = {1, 128, 8192, 1, 0}, .median = Seconds{1e-5}, .repeats = 1}};
  const ClusterFit unchanged = fit_cluster(base, {.gemms = {thin}});
  CHECK(unchanged.cluster.device.gemm_efficiency == 0.79);
  CHECK(unchanged.notes.size() == 1);
}

TEST_CASE("a run's step gives the efficiency at which its plan lasts as long, and its memory what is not tensors") {
  Plan plan = small_plan();
  plan.cluster.device.gemm_efficiency = 0.4;
  const Evaluation slow = evaluate(plan, {.record_timeline = false});
  REQUIRE(slow.exists);
  const double step = step_time(slow.simulation).count();
  const std::int64_t peak = slow.simulation.peak_memory_bytes[0];
  const ClusterSpec base = preset_cluster("h100");
  const TrainingLog log{
      .file = "m.log", .values = {step * 0.99, step, step * 1.01}, .reserved_bytes = peak + (std::int64_t{3} << 30)};
  const ClusterFit fit = fit_cluster(base, {.trainings = {log}, .plan = plan});
  CHECK(constant(fit, "device.gemm_efficiency").value == doctest::Approx(0.4).epsilon(1e-4));
  CHECK(constant(fit, "device.gemm_efficiency").observations == 3);
  CHECK(*constant(fit, "device.gemm_efficiency").standard_error > 0);
  CHECK(constant(fit, "device.reserved_gib").value == doctest::Approx(3).epsilon(0.01));
  check_refused<SpecError>([&] { fit_cluster(base, {.trainings = {log}}); }, "m.log", "plan that was run");
  TrainingLog fast = log;
  fast.values = {step / 100};
  check_refused<SpecError>([&] { fit_cluster(base, {.trainings = {fast}, .plan = plan}); }, "m.log",
                           "mapping is wrong");
  // Measured products leave nothing to fit to the step: the prediction is compared with it.
  ClusterSpec sampled = base;
  sampled.samples = {{.kernel = "gemm", .shape = {4096, 4096, 4096, 1, 0}, .median = Seconds{2e-4}, .repeats = 1}};
  const ClusterFit held = fit_cluster(sampled, {.trainings = {log}, .plan = plan});
  CHECK(held.notes.at(0).find("step time: measured") == 0);
  CHECK(held.cluster.device.gemm_efficiency == base.device.gemm_efficiency);
}

}  // namespace plumb::test
