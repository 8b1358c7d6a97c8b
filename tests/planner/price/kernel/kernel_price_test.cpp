#include "planner/price/kernel/kernel_price.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

const TrainingSpec kBf16Training{.global_batch = 1, .sequence = 1, .gradient_precision = Precision::kBf16};

KernelCall gemm(std::int64_t m, std::int64_t n, std::int64_t k, GemmForm form = GemmForm::kForward) {
  return kernel_call(KernelKind::kGemm, {m, n, k, 1, static_cast<std::int64_t>(form)});
}

/// Returns the seconds of a product on a machine that is unlike the roofline, like a CPU library: it has blocks of 16 x
/// 24, and each short side costs speed.
double stubborn_gemm_seconds(double m, double n, double k) {
  const double blocks = std::ceil(m / 16) * 16 * std::ceil(n / 24) * 24;
  return 1e-6 + 2 * blocks * (k + 60) / 50e9 * (1 + 40 / m) * (1 + 20 / n);
}

}  // namespace

TEST_CASE("a large GEMM is bound by its FLOPs, a thin one by its bytes") {
  const KernelPrices prices = kernel_prices(round_cluster(1), kBf16Training, 1);
  // 2 * 4096^3 FLOPs at 100 TFLOP/s.
  CHECK(kernel_time(prices, gemm(4096, 4096, 4096)).count() == doctest::Approx(2 * std::pow(4096.0, 3) / 100e12));
  // (1*4096 + 4096*4096 + 1*4096) elements of 2 bytes at 1 TB/s.
  CHECK(kernel_time(prices, gemm(1, 4096, 4096)).count() == doctest::Approx((2 * 4096.0 + 4096.0 * 4096.0) * 2 / 1e12));
}

TEST_CASE(
    "a convolution is bound by the FLOPs of its implicit product in all three passes, a depthwise one by its bytes") {
  const KernelPrices prices = kernel_prices(round_cluster(1), kBf16Training, 1);
  for (const KernelKind pass :
       {KernelKind::kConvolutionForward, KernelKind::kConvolutionInputGrad, KernelKind::kConvolutionWeightGrad}) {
    const KernelCall wide = kernel_call(pass, {64, 28, 28, 256, 256, 3, 1, 1, 1});
    CHECK(kernel_time(prices, wide).count() == doctest::Approx(2.0 * 64 * 28 * 28 * 256 * 9 * 256 / 100e12));
    const KernelCall depthwise = kernel_call(pass, {64, 28, 28, 256, 256, 3, 1, 1, 256});
    CHECK(kernel_time(prices, depthwise).count() == doctest::Approx(depthwise.elements_moved * 2 / 1e12));
  }
}

TEST_CASE("efficiencies divide and the fixed part adds") {
  ClusterSpec cluster = round_cluster(1);
  cluster.device.gemm_efficiency = 0.5;
  cluster.device.attention_efficiency = 0.25;
  cluster.device.memory_efficiency = 0.5;
  cluster.device.kernel_fixed = Seconds{3e-6};
  const KernelPrices prices = kernel_prices(cluster, kBf16Training, 1);
  CHECK(kernel_time(prices, gemm(4096, 4096, 4096)).count() == doctest::Approx(3e-6 + 2 * std::pow(4096.0, 3) / 50e12));
  const KernelCall attention = kernel_call(KernelKind::kAttentionForward, {1, 4096, 8, 8, 128, 0});
  CHECK(kernel_time(prices, attention).count() == doctest::Approx(3e-6 + attention.flops / 25e12));
  // x, y, z are three tensors of 1e6 elements of 2 bytes at 0.5 TB/s.
  CHECK(kernel_time(prices, kernel_call(KernelKind::kResidualAdd, {1000, 1000})).count() ==
        doctest::Approx(3e-6 + 6e6 / 0.5e12));
}

TEST_CASE("a stack whose fp8 products would outrun the device's peak is read wrongly") {
  ClusterSpec cluster = round_cluster(1);
  cluster.device.peak_flops_per_second[Precision::kFp8] = 200e12;
  cluster.device.gemm_efficiency = 0.8;
  TrainingSpec training = kBf16Training;
  training.stack = StackSpec{.name = "eager", .fp8 = {.gemm_factor = 1.26}};
  CHECK_NOTHROW(static_cast<void>(kernel_prices(cluster, training, 1)));
  training.precision = Precision::kFp8;
  CHECK(refusal([&] { kernel_prices(cluster, training, 1); }) ==
        "stack eager: fp8_gemm_factor 1.26 makes products 1.01 times as fast as " + cluster.device.name +
            "'s peak: the mapping is wrong");
  training.stack->fp8.gemm_factor = 1.25;
  CHECK_NOTHROW(static_cast<void>(kernel_prices(cluster, training, 1)));
}

TEST_CASE("a GEMM pays for whole tiles and whole waves") {
  ClusterSpec cluster = round_cluster(1);
  cluster.device.gemm_tile = 128;
  cluster.device.compute_units = 100;
  const KernelPrices prices = kernel_prices(cluster, kBf16Training, 1);
  const double middle = 2.0 * 128 * 128 * 8192 / 1e12 / .95;  // seconds of a 128 x 128 tile; a unit has 1 TFLOP/s
  const double large = 2.0 * 256 * 128 * 8192 / 1e12;
  const auto time = [&](std::int64_t m, std::int64_t n) { return kernel_time(prices, gemm(m, n, 8192)).count(); };
  CHECK(time(1280, 1280) == doctest::Approx(middle));       // 100 middle tiles: one wave
  CHECK(time(1153, 1153) == doctest::Approx(middle));       // ragged, 100 all the same
  CHECK(time(2560, 1280) == doctest::Approx(large));        // 100 large tiles
  CHECK(time(25600, 1281) == doctest::Approx(11 * large));  // 1100 large tiles: eleven waves
  cluster.device.wave_fixed = Seconds{1e-3};
  CHECK(kernel_time(kernel_prices(cluster, kBf16Training, 1), gemm(25600, 1281, 8192)).count() ==
        doctest::Approx(11 * (large + 1e-3)));
}

TEST_CASE("few tiles with a long sum are divided along it") {
  ClusterSpec cluster = round_cluster(1);
  cluster.device.gemm_tile = 128;
  cluster.device.compute_units = 100;
  const KernelPrices prices = kernel_prices(cluster, kBf16Training, 1);
  const double whole = 2.0 * 128 * 128 * 65536 / 1e12 / .95;  // one middle tile, the other units idle
  const double parts = whole / 8 + 8 * 8 * 128 * 128 / 1e12;  // eight parts of K, their fp32 sums in memory
  CHECK(kernel_time(prices, gemm(128, 128, 65536)).count() <= parts);
  CHECK(kernel_time(prices, gemm(128, 128, 65536)).count() < whole / 4);
}

TEST_CASE("weight gradients accumulate in their own precision, and AdamW moves its own bytes") {
  TrainingSpec training = kBf16Training;
  const auto time = [&](const KernelCall& call) {
    return kernel_time(kernel_prices(round_cluster(1), training, 1), call).count();
  };
  const double narrow = time(gemm(4096, 4096, 1, GemmForm::kWeightGrad));
  training.gradient_precision = Precision::kFp32;
  // Each of m n elements has two more bytes, read and written.
  CHECK(time(gemm(4096, 4096, 1, GemmForm::kWeightGrad)) - narrow == doctest::Approx(4 * 4096.0 * 4096.0 / 1e12));
  CHECK(time(kernel_call(KernelKind::kAdamW, {1000000})) == doctest::Approx(34e6 / 1e12));
}

TEST_CASE("a measured shape comes out as measured, one beside it on the same curve") {
  ClusterSpec cluster = round_cluster(1);
  for (const std::int64_t rows : {100, 400, 1600}) {
    const double bytes = 3.0 * 1000 * static_cast<double>(rows) * 2;
    cluster.samples.push_back({.kernel = "residual_add", .shape = {rows, 1000}, .median = Seconds{3 * bytes / 1e12}});
  }
  const KernelPrices prices = kernel_prices(cluster, kBf16Training, 1);
  const auto time = [&](std::int64_t rows) {
    return kernel_time(prices, kernel_call(KernelKind::kResidualAdd, {rows, 1000})).count();
  };
  CHECK(time(400) == doctest::Approx(3 * 6000.0 * 400 / 1e12));
  CHECK(time(800) == doctest::Approx(3 * 6000.0 * 800 / 1e12));  // everything takes three times the roofline
  CHECK(time(1) == doctest::Approx(3 * 6000.0 / 1e12));
}

TEST_CASE("samples are taken for as many busy ranks as there are, or the nearest number below") {
  ClusterSpec cluster = round_cluster(4);
  for (const int busy : {1, 2}) {
    cluster.samples.push_back(
        {.kernel = "residual_add", .shape = {10, 10}, .median = Seconds{1e-6 * busy}, .busy_ranks = busy});
  }
  const auto time = [&](int busy) {
    return kernel_time(kernel_prices(cluster, kBf16Training, busy), kernel_call(KernelKind::kResidualAdd, {10, 10}))
        .count();
  };
  CHECK(time(1) == doctest::Approx(1e-6));
  CHECK(time(2) == doctest::Approx(2e-6));
  CHECK(time(4) == doctest::Approx(2e-6));
  std::erase_if(cluster.samples, [](const KernelSample& sample) { return sample.busy_ranks == 1; });
  CHECK(time(1) == doctest::Approx(2e-6));
}

TEST_CASE("the host launches a call in the median time of its kind's samples, of as many busy ranks") {
  ClusterSpec cluster = round_cluster(2);
  for (const int busy : {1, 2})
    for (const double us : {3.0, 9.0, 4.0})
      cluster.samples.push_back({.kernel = "residual_add",
                                 .shape = {10, 10},
                                 .median = Seconds{1e-6},
                                 .busy_ranks = busy,
                                 .host = Seconds{busy * us * 1e-6}});
  const auto time = [&](int busy, KernelKind kind, std::vector<std::int64_t> shape) {
    return launch_time(kernel_prices(cluster, kBf16Training, busy), kernel_call(kind, std::move(shape))).count();
  };
  CHECK(time(1, KernelKind::kResidualAdd, {7, 7}) == doctest::Approx(4e-6));
  CHECK(time(2, KernelKind::kResidualAdd, {7, 7}) == doctest::Approx(8e-6));
  CHECK(time(1, KernelKind::kGemm, {8, 8, 8, 1, 0}) == 0);  // nothing is known
}

TEST_CASE("another variant of a kernel is corrected by its own samples") {
  ClusterSpec cluster = round_cluster(1);
  cluster.samples = {{.kernel = "gemm", .shape = {64, 64, 64, 1, 0}, .median = Seconds{1e-3}},
                     {.kernel = "gemm", .shape = {64, 64, 64, 1, 2}, .median = Seconds{5e-3}}};
  const KernelPrices prices = kernel_prices(cluster, kBf16Training, 1);
  CHECK(kernel_time(prices, gemm(64, 64, 64, GemmForm::kWeightGrad)).count() == doctest::Approx(5e-3));
  CHECK(kernel_time(prices, gemm(64, 64, 64)).count() == doctest::Approx(1e-3));
}

TEST_CASE("GEMMs that were not measured come out within 10 % on average from a grid of those that were") {
  ClusterSpec cluster = round_cluster(1);
  cluster.device.peak_flops_per_second[Precision::kBf16] = 50e9;
  for (const std::int64_t m : {16, 32, 64, 128, 256, 512, 1024}) {
    for (const std::int64_t n : {64, 128, 256, 512, 1024}) {
      for (const std::int64_t k : {64, 128, 256, 512, 1024}) {
        const double seconds =
            stubborn_gemm_seconds(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k));
        cluster.samples.push_back({.kernel = "gemm", .shape = {m, n, k, 1, 0}, .median = Seconds{seconds}});
      }
    }
  }
  const KernelPrices prices = kernel_prices(cluster, kBf16Training, 1);
  double sum = 0;
  double worst = 0;
  int count = 0;
  for (const std::int64_t m : {24, 48, 100, 200, 768, 1500}) {
    for (const std::int64_t n : {96, 128, 384, 768}) {
      for (const std::int64_t k : {96, 128, 512, 768}) {
        const double truth =
            stubborn_gemm_seconds(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k));
        const double error = std::abs(kernel_time(prices, gemm(m, n, k)).count() / truth - 1);
        sum += error;
        worst = std::max(worst, error);
        ++count;
      }
    }
  }
  CHECK(sum / count < 0.10);
  CHECK(worst < 0.30);  // a shape just above a block's edge costs a block that its neighbours did not show
}

TEST_CASE("a precision that the device has no peak for is refused with those it has") {
  TrainingSpec training = kBf16Training;
  training.precision = Precision::kFp16;
  check_refused<SpecError>([&] { kernel_prices(round_cluster(1), training, 1); }, "round device", "fp32, bf16");
}

}  // namespace plumb::test
