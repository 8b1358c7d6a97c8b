#include "planner/calibrate/calibration.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/price/collective/collective_price.h"
#include "planner/price/kernel/kernel_price.h"
#include "planner/search/search.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

KernelSample sample(KernelKind kind, std::vector<std::int64_t> shape, double seconds) {
  const Seconds time{seconds};
  return {.kernel = std::string(kernel_name(kind)),
          .shape = std::move(shape),
          .median = time,
          .fastest = time,
          .slowest = time,
          .repeats = 5};
}

/// A core of 50 GFLOP/s and 10 GB/s, whose messages take 2 us and move 5 GB/s.
Measurement core_measurement() {
  Measurement measurement{
      .backend = "cpu", .device = "a core", .cores = 2, .memory_bytes = std::int64_t{8} << 30, .date = "2026-01-01"};
  for (const std::int64_t size : {64, 128, 256}) {
    const double flops = 2.0 * static_cast<double>(size * size * size);
    measurement.samples.push_back(sample(KernelKind::kGemm, {size, size, size, 1, 0}, flops / 50e9));
    const double bytes = 12.0 * static_cast<double>(size) * 1000;
    measurement.samples.push_back(sample(KernelKind::kResidualAdd, {size, 1000}, bytes / 10e9));
  }
  for (const std::int64_t bytes : {1000, 10000, 1000000}) {
    const Seconds time{2e-6 + static_cast<double>(bytes) / 5e9};
    measurement.samples.push_back(
        {.kernel = "message", .shape = {bytes}, .median = time, .fastest = time, .slowest = time, .repeats = 5});
  }
  return measurement;
}

}  // namespace

TEST_CASE("a measurement becomes a cluster with its rates") {
  const ClusterSpec cluster = cluster_from_measurement(core_measurement());
  CHECK(cluster.devices == 2);
  CHECK(cluster.devices_per_node == 2);
  CHECK(cluster.device.memory_bytes == std::int64_t{4} << 30);
  CHECK(cluster.device.peak_flops_per_second.at(Precision::kFp32) == doctest::Approx(50e9));
  CHECK(cluster.device.gemm_efficiency == doctest::Approx(1.0));
  CHECK(cluster.device.memory_bytes_per_second == doctest::Approx(10e9));
  CHECK(cluster.node_link->bytes_per_second == doctest::Approx(5e9));
  CHECK(cluster.node_link->latency.count() == doctest::Approx(2e-6));
}

TEST_CASE("a calibrated cluster survives its file and prices what was measured as measured") {
  const ClusterSpec cluster = parse_cluster(to_json(cluster_from_measurement(core_measurement())).dump(), "again");
  const TrainingSpec training{.precision = Precision::kFp32};
  const KernelPrices prices = kernel_prices(cluster, training, 1);
  for (const KernelSample& measured : cluster.samples) {
    if (measured.kernel != "gemm") continue;
    CHECK(kernel_time(prices, kernel_call(KernelKind::kGemm, measured.shape)).count() ==
          doctest::Approx(measured.median.count()));
  }
}

TEST_CASE("a measurement in bf16 becomes a cluster for bf16, with what a kernel takes at least") {
  const ClusterSpec measured =
      cluster_from_measurement(core_measurement(), {.precision = Precision::kBf16, .kernel_fixed = Seconds{3e-6}});
  const ClusterSpec cluster = parse_cluster(to_json(measured).dump(), "again");
  CHECK(cluster.device.peak_flops_per_second.size() == 1);
  CHECK(cluster.device.peak_flops_per_second.at(Precision::kBf16) == doctest::Approx(50e9));
  CHECK(cluster.device.memory_bytes_per_second == doctest::Approx(5e9));  // the same elements in half the bytes
  CHECK(cluster.device.kernel_fixed.count() == doctest::Approx(3e-6));
  const KernelPrices prices = kernel_prices(cluster, {.precision = Precision::kBf16}, 1);
  for (const KernelSample& sample : cluster.samples)
    if (sample.kernel == "gemm")
      CHECK(kernel_time(prices, kernel_call(KernelKind::kGemm, sample.shape)).count() ==
            doctest::Approx(sample.median.count()));
}

TEST_CASE("a small model can be planned on a calibrated machine") {
  const SearchResult result = found_layouts(preset_model("gpt-nano"), cluster_from_measurement(core_measurement()),
                                            {.global_batch = 8, .sequence = 64, .precision = Precision::kFp32}, {}, {});
  CHECK(!result.ranked.empty());
}

TEST_CASE("the fit of messages never has a negative latency") {
  Measurement measurement = core_measurement();
  std::erase_if(measurement.samples, [](const KernelSample& s) { return s.kernel == "message"; });
  for (const std::int64_t bytes : {1000, 10000, 100000}) {  // smaller messages are faster: a line would start below 0
    measurement.samples.push_back(
        {.kernel = "message", .shape = {bytes}, .median = Seconds{static_cast<double>(bytes * bytes) / 1e14}});
  }
  CHECK(cluster_from_measurement(measurement).node_link->latency.count() == 0);
}

TEST_CASE("a measurement without what the fit needs is refused with the remedy") {
  const auto without = [](const char* kernel) {
    Measurement measurement = core_measurement();
    std::erase_if(measurement.samples, [kernel](const KernelSample& s) { return s.kernel == kernel; });
    return measurement;
  };
  check_refused<SpecError>([&] { cluster_from_measurement(without("gemm")); }, "a core", "gemm");
  check_refused<SpecError>([&] { cluster_from_measurement(without("residual_add")); }, "a core", "memory-bound");
  check_refused<SpecError>([&] { cluster_from_measurement(without("message")); }, "a core", "messages");
  Measurement bad = core_measurement();
  bad.samples[0].median = Seconds{0};
  check_refused<SpecError>([&] { cluster_from_measurement(bad); }, "sample 0", "measure it again");
  bad = core_measurement();
  bad.samples[1].kernel = "gem";
  check_refused<SpecError>([&] { cluster_from_measurement(bad); }, "sample 1", "gem");
}

}  // namespace plumb::test
