#include "planner/price/framework/kernel_time.h"

#include <utility>

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

const TrainingSpec kOneToken{.global_batch = 1, .sequence = 1};

double time_of(const ClusterSpec& cluster, const DeviceKernel& kernel, const StackSpec& stack = {.name = "any"},
               Precision precision = Precision::kBf16) {
  TrainingSpec training = kOneToken;
  training.precision = precision;
  return device_kernel_time(kernel_prices(cluster, training, 1), stack, kernel).count();
}

DeviceKernel product(double m, double n, double k) {
  return {.name = "product", .kind = DeviceKernel::Kind::kGemm, .shape = {m, n, k}};
}

}  // namespace

TEST_CASE("a memory-bound kernel lasts its fixed part and its bytes, as many more as the stack moves") {
  ClusterSpec cluster = round_cluster(1);  // 1 TB/s
  cluster.device.kernel_fixed = Seconds{2e-6};
  const DeviceKernel kernel{.name = "norm", .bytes = 1e6};
  CHECK(time_of(cluster, kernel) == doctest::Approx(2e-6 + 1e-6));
  CHECK(time_of(cluster, kernel, {.name = "eager", .memory_traffic = 1.5}) == doctest::Approx(2e-6 + 1.5e-6));
}

TEST_CASE("fused attention runs at its own rate on that device, which grows with the sequence") {
  ClusterSpec cluster = round_cluster(1);  // 100 TFLOP/s
  cluster.device.attention["flash2"] = {
      .forward = 0.5, .backward = 0.4, .half_sequence = 1000, .backward_half_sequence = 2000};
  DeviceKernel kernel{
      .name = "attention", .kind = DeviceKernel::Kind::kAttentionForward, .flops = 1e12, .sequence = 1000};
  const StackSpec stack{.name = "fused", .attention = AttentionKernel::kFlash2};
  CHECK(time_of(cluster, kernel, stack) == doctest::Approx(1e12 / (100e12 * 0.25)));
  kernel.sequence = 3000;
  CHECK(time_of(cluster, kernel, stack) == doctest::Approx(1e12 / (100e12 * 0.375)));
  kernel.kind = DeviceKernel::Kind::kAttentionBackward;
  CHECK(time_of(cluster, kernel, stack) == doctest::Approx(1e12 / (100e12 * 0.24)));
  cluster.device.attention_efficiency = 0.8;  // a kernel that the device does not name
  CHECK(time_of(cluster, kernel, {.name = "other", .attention = AttentionKernel::kCudnn}) ==
        doctest::Approx(1e12 / 80e12));
}

TEST_CASE("fp8 and NVFP4 speed up the products of weights, not those of activations") {
  ClusterSpec cluster = round_cluster(1);
  for (const auto& [precision, times] : {std::pair{Precision::kFp8, 2}, {Precision::kNvfp4, 4}}) {
    cluster.device.peak_flops_per_second[precision] = times * 100e12;
    DeviceKernel kernel = product(4096, 4096, 4096);
    const double narrow = time_of(cluster, kernel, {.name = "any"}, precision);
    CHECK(time_of(cluster, kernel) == doctest::Approx(times * narrow));
    cluster.device.quantized_gemm_efficiency[precision] = cluster.device.gemm_efficiency / 2;
    CHECK(time_of(cluster, kernel, {.name = "any"}, precision) == doctest::Approx(2 * narrow));
    kernel.batched = true;
    CHECK(time_of(cluster, kernel, {.name = "any"}, precision) == doctest::Approx(time_of(cluster, kernel)));
  }
}

TEST_CASE("products with misaligned rows take the device's factors longer") {
  ClusterSpec cluster = round_cluster(1);
  cluster.device.misaligned_rows = 2;
  cluster.device.misaligned_by_4 = 9;
  cluster.device.misaligned_by_2 = 13;
  DeviceKernel kernel = product(4096, 4096, 4096);
  const double aligned = time_of(cluster, kernel);
  kernel.alignment = 50257;
  CHECK(time_of(cluster, kernel) == doctest::Approx(2 * aligned));
  kernel.alignment = 50304;
  CHECK(time_of(cluster, kernel) == doctest::Approx(aligned));
  kernel.batched = true;
  for (const auto& [head, factor] : {std::pair(128, 1.0), std::pair(108, 9.0), std::pair(150, 13.0)}) {
    kernel.alignment = head;
    CHECK(time_of(cluster, kernel) == doctest::Approx(factor * aligned));
  }
}

TEST_CASE("a measured shape overrides the model of a product") {
  ClusterSpec cluster = round_cluster(1);
  cluster.samples.push_back({.kernel = "gemm", .shape = {512, 512, 512, 1, 0}, .median = Seconds{1e-3}});
  DeviceKernel kernel = product(512, 512, 512);
  kernel.bytes = 3 * 512 * 512 * 2;
  CHECK(time_of(cluster, kernel) == doctest::Approx(1e-3));
}

TEST_CASE("a way of scaling that is slower takes fp8 products longer, and what is not quantized as long as before") {
  ClusterSpec cluster = round_cluster(1);
  cluster.device.peak_flops_per_second[Precision::kFp8] = 200e12;
  DeviceKernel kernel = product(4096, 4096, 4096);
  const StackSpec rowwise{.name = "rowwise", .fp8 = {.gemm_factor = 0.5}};
  const double fast = time_of(cluster, kernel, {.name = "any"}, Precision::kFp8);
  CHECK(time_of(cluster, kernel, rowwise, Precision::kFp8) == doctest::Approx(2 * fast));
  CHECK(time_of(cluster, kernel, rowwise) == doctest::Approx(time_of(cluster, kernel)));  // bf16
  kernel.wide = true;
  CHECK(time_of(cluster, kernel, rowwise, Precision::kFp8) == doctest::Approx(time_of(cluster, kernel)));
}

TEST_CASE("a grouped product runs at its share of a product's rate where it is quantized or its bias stands apart") {
  ClusterSpec cluster = round_cluster(1);
  cluster.device.peak_flops_per_second[Precision::kFp8] = 200e12;
  DeviceKernel kernel = product(4096, 4096, 4096);
  StackSpec grouped{.name = "grouped"};
  grouped.expert_gemm_share = 0.5;
  const double whole = time_of(cluster, kernel);
  const double narrow = time_of(cluster, kernel, {.name = "any"}, Precision::kFp8);
  CHECK(time_of(cluster, kernel, grouped, Precision::kFp8) == doctest::Approx(narrow));
  kernel.routed = true;
  CHECK(time_of(cluster, kernel, grouped, Precision::kFp8) == doctest::Approx(narrow));  // wide experts
  kernel.narrow = true;
  CHECK(time_of(cluster, kernel, grouped) == doctest::Approx(whole));
  CHECK(time_of(cluster, kernel, grouped, Precision::kFp8) == doctest::Approx(2 * narrow));
  kernel.biased = true;
  CHECK(time_of(cluster, kernel, grouped) == doctest::Approx(2 * whole));
}

TEST_CASE("a grouped product of M rows an expert reaches M / (M + half) of a plain one's rate") {
  ClusterSpec cluster = round_cluster(1);
  StackSpec grouped{.name = "grouped"};
  grouped.expert_half_rows = 72;
  DeviceKernel kernel = product(216, 4096, 4096);  // tokens of an expert by outputs by inputs
  const double plain = time_of(cluster, kernel, grouped);
  kernel.routed = true;
  CHECK(time_of(cluster, kernel, grouped) == doctest::Approx(plain * 288 / 216));
  DeviceKernel gradient = product(4096, 4096, 216);  // its weights' gradient sums over the tokens
  gradient.form = GemmForm::kWeightGrad;
  const double alone = time_of(cluster, gradient, grouped);
  gradient.routed = true;
  CHECK(time_of(cluster, gradient, grouped) == doctest::Approx(alone * 288 / 216));
}

TEST_CASE("a ring of n ranks makes n - 1 steps, and 2 (n - 1) where it sums and hands the sum out") {
  const StackSpec stack{.name = "any", .tensor_collective = Seconds{200e-6}, .tensor_step = Seconds{10e-6}};
  const auto fixed = [&](CollectiveKind kind, int ranks, Group group = Group::kTensor) {
    return fixed_time(stack, {.group = group, .kind = kind}, ranks).count();
  };
  using enum CollectiveKind;
  CHECK(fixed(kAllGather, 8) == doctest::Approx(270e-6));
  CHECK(fixed(kReduceScatter, 2) == doctest::Approx(210e-6));
  CHECK(fixed(kAllReduce, 8) == doctest::Approx(340e-6));
  CHECK(fixed(kAllToAll, 8, Group::kExpert) == 0);
}

}  // namespace plumb::test
