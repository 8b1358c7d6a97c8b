#include "executor/measure/device/measure_device.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "executor/measure/device/device_kernel_calls.h"
#include "schedules/error.h"
#include "tests/executor/machines/host_machine.h"

namespace plumb::test {
namespace {

/// Returns one small call of each kind that a device has.
std::vector<KernelCall> small_calls() {
  std::vector<KernelCall> calls;
  for (const std::int64_t form : {0, 1, 2, 3, 4, 5})
    calls.push_back(kernel_call(KernelKind::kGemm, {24, 16, 40, 1, form}));
  for (const KernelKind kind : {KernelKind::kAttentionForward, KernelKind::kAttentionBackward})
    calls.push_back(kernel_call(kind, {1, 20, 2, 1, 8, 0}));
  for (const std::int64_t variant : {0, 1})
    for (const KernelKind kind :
         {KernelKind::kNormForward, KernelKind::kNormBackward, KernelKind::kActivationForward,
          KernelKind::kActivationBackward, KernelKind::kEmbeddingForward, KernelKind::kEmbeddingBackward})
      calls.push_back(kernel_call(kind, {12, 16, variant}));
  for (const std::int64_t variant : {2, 3}) calls.push_back(kernel_call(KernelKind::kNormForward, {12, 16, variant}));
  for (const KernelKind kind : {KernelKind::kBiasForward, KernelKind::kBiasBackward, KernelKind::kResidualAdd})
    calls.push_back(kernel_call(kind, {12, 16}));
  calls.push_back(kernel_call(KernelKind::kCrossEntropy, {12, kMeasuredVocab}));
  calls.push_back(kernel_call(KernelKind::kRotary, {12, 2, 8}));
  for (const KernelKind kind : {KernelKind::kAdamW, KernelKind::kAdamW8Bit, KernelKind::kSgd, KernelKind::kLion})
    calls.push_back(kernel_call(kind, {300}));
  for (const std::int64_t rows : {0, 6}) calls.push_back(kernel_call(KernelKind::kAdafactor, {1, rows, 20}));
  calls.push_back(kernel_call(KernelKind::kCopy, {300}));
  calls.push_back(kernel_call(KernelKind::kCopyRows, {14, 9}));
  calls.push_back(kernel_call(KernelKind::kWeighPicks, {14, 6, 9}));
  calls.push_back(kernel_call(KernelKind::kRouter, {7, 5, 2}));
  for (const std::int64_t form : {0, 1, 2}) {
    calls.push_back(kernel_call(KernelKind::kExpertProducts, {7, 6, 9, 3, form}));
    calls.push_back(kernel_call(KernelKind::kRouterProduct, {7, 5, 9, form}));
  }
  for (const KernelKind kind :
       {KernelKind::kReluForward, KernelKind::kReluBackward, KernelKind::kDropout, KernelKind::kSquaredError})
    calls.push_back(kernel_call(kind, {12, 20}));
  for (const KernelKind kind :
       {KernelKind::kConvolutionForward, KernelKind::kConvolutionInputGrad, KernelKind::kConvolutionWeightGrad}) {
    calls.push_back(kernel_call(kind, {3, 9, 7, 4, 6, 3, 2, 1, 2}));
    calls.push_back(kernel_call(kind, {2, 5, 5, 4, 6, 1, 1, 0, 1}));
  }
  for (const std::int64_t average : {0, 1})
    for (const KernelKind kind : {KernelKind::kPoolingForward, KernelKind::kPoolingBackward})
      calls.push_back(kernel_call(kind, {3, 7, 6, 4, 3, 2, average}));
  return calls;
}

DeviceMeasureOptions small_options(int parts, std::optional<HalfFormat> half) {
  return {.parts = parts,
          .half = half,
          .budget = Seconds{600},  // all of them, however busy the machine is
          .device = "the host",
          .date = "2026-01-01",
          .kernels = small_calls(),
          .largest_copy_bytes = 64 << 10,
          .round_bytes = 256 << 10};
}

}  // namespace

TEST_CASE("a device's kernels, copies and launches are measured, alone and on all of its parts at once") {
  for (const std::optional<HalfFormat> half : {std::optional<HalfFormat>(), std::optional(HalfFormat::kBf16)}) {
    HostMachine machine(half);
    const DeviceMeasurement measured = measure_device(machine, small_options(2, half));
    CHECK(measured.measurement.backend == "cuda");
    CHECK(measured.measurement.cores == 2);
    for (const int busy : {1, 2}) {
      for (const KernelCall& call : small_calls()) {
        INFO(kernel_name(call.kind) << " on " << busy);
        CHECK(std::ranges::count_if(measured.measurement.samples, [&](const KernelSample& sample) {
                return sample.kernel == kernel_name(call.kind) && sample.shape == call.shape &&
                       sample.busy_ranks == busy;
              }) == 1);
      }
    }
    for (const KernelSample& sample : measured.measurement.samples) {
      CHECK(sample.fastest.count() >= 0);
      CHECK(sample.fastest <= sample.median);
      CHECK(sample.median <= sample.slowest);
    }
    CHECK(std::ranges::count(measured.measurement.samples, "message", &KernelSample::kernel) == 3);  // 4, 16, 64 KiB
    CHECK(measured.kernel_fixed.count() > 0);
    CHECK(measured.enqueue.count() > 0);
    CHECK(measured.from_host_bytes_per_second > 0);
    CHECK(measured.to_host_bytes_per_second > 0);
    for (const BesideTime& time : {measured.product_contention, measured.memory_contention,
                                   measured.product_beside_copy, measured.copy_beside_product}) {
      CHECK(time.alone.count() > 0);
      CHECK(time.beside.count() > 0);
    }
  }
}

TEST_CASE("what a device has no memory or no time for is left out of its measurement") {
  DeviceMeasureOptions options = small_options(1, {});
  options.kernels.push_back(kernel_call(KernelKind::kResidualAdd, {1 << 20, 1 << 20}));
  HostMachine machine({}, {}, 8 << 20);
  const DeviceMeasurement measured = measure_device(machine, options);
  CHECK(std::ranges::count(measured.measurement.samples, "residual_add", &KernelSample::kernel) == 1);
  HostMachine hurried;
  options.budget = Seconds{1e-7};
  std::set<std::string> kinds;
  const DeviceMeasurement least = measure_device(hurried, options);
  for (const KernelSample& sample : least.measurement.samples) kinds.insert(sample.kernel);
  CHECK(kinds.size() == kDeviceKernelKindCount + 1);  // every kind of kernel, and copies
  // Every form of products is measured, too: a planner prices whether they take in the kernels that follow them.
  CHECK(least.measurement.samples.size() == kinds.size() - 1 + 5 + 3);
}

TEST_CASE("products are measured before sums that take longer, though they have more operations") {
  DeviceMeasureOptions options = small_options(1, {});
  const KernelCall sum = kernel_call(KernelKind::kResidualAdd, {512, 512});
  options.kernels = {sum, kernel_call(KernelKind::kGemm, {128, 64, 64, 1, 0})};
  HostMachine machine;
  const DeviceMeasurement measured = measure_device(machine, options);
  REQUIRE(measured.measurement.samples.size() >= 2);
  CHECK(measured.measurement.samples[0].kernel == "gemm");
  CHECK(measured.measurement.samples[1].shape == sum.shape);
}

TEST_CASE("a device's ladder has every kind and form of kernel, and a measurement needs a part and a time") {
  std::set<KernelKind> kinds;
  for (const KernelCall& call : device_kernel_ladder()) kinds.insert(call.kind);
  for (int kind = 0; kind < kDeviceKernelKindCount; ++kind) CHECK(kinds.contains(static_cast<KernelKind>(kind)));
  std::set<std::int64_t> forms;
  for (const KernelCall& call : device_kernel_ladder())
    if (call.kind == KernelKind::kGemm) forms.insert(call.shape[4]);
  CHECK(forms == std::set<std::int64_t>{0, 1, 2, 3, 4, 5});
  HostMachine machine;
  CHECK_THROWS_AS(measure_device(machine, {.parts = 0}), SpecError);
  CHECK_THROWS_AS(measure_device(machine, {.budget = Seconds{0}}), SpecError);
}

}  // namespace plumb::test
