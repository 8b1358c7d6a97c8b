#include "planner/price/framework/mamba2_ops.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "planner/price/memory/framework_memory.h"
#include "tests/planner/price/framework/gpt_layer.h"

namespace plumb::test {
namespace {

constexpr Mamba2Layer kMamba{.hidden = 1024, .heads = 32, .head_size = 64, .state_size = 128, .groups = 8};

double product_flops(const PassOps& pass) {
  double sum = 0;
  for (const DeviceKernel& kernel : pass.kernels)
    if (kernel.kind == DeviceKernel::Kind::kGemm) sum += 2 * kernel.shape.m * kernel.shape.n * kernel.shape.k;
  return sum;
}

const DeviceKernel* states_of(const PassOps& pass, DeviceKernel::Kind kind) {
  const auto found = std::ranges::find(pass.kernels, kind, &DeviceKernel::kind);
  return found == pass.kernels.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("a framework's block of Mamba-2 has its two projections and one state space in each pass") {
  const LayerOps ops = mamba2_ops(kMamba, {.microbatch = 2, .sequence = 512}, unfused(), kElementBytes);
  const double projections = 2.0 * 1024 * 1024 * (2048 + 2048 + 2 * 8 * 128 + 32 + 2048);
  CHECK(product_flops(ops.forward) == doctest::Approx(projections));
  CHECK(product_flops(ops.input_grad) == doctest::Approx(projections));
  CHECK(product_flops(ops.weight_grad) == doctest::Approx(projections));
  const DeviceKernel* states = states_of(ops.forward, DeviceKernel::Kind::kAttentionForward);
  REQUIRE(states != nullptr);
  // A token in chunks of 256: C B^T in 8 groups, M X in 32 heads, the states' update and their reading.
  CHECK(states->flops == doctest::Approx(1024.0 * (2 * 8 * 128 * 256 + 2 * 2048 * 256 + 4 * 2048 * 128)));
  CHECK(states_of(ops.input_grad, DeviceKernel::Kind::kAttentionBackward) != nullptr);
  CHECK(product_flops(ops.rebuild_selective) == 0);
  CHECK(product_flops(ops.rebuild_full) == doctest::Approx(projections));
  CHECK(ops.forward.exchanges.empty());
}

TEST_CASE("tensor ranks sum a block's stream once each way, or gather and scatter it") {
  LayerWork work{.microbatch = 2, .sequence = 512, .tensor_parallel = 2};
  const LayerOps summed = mamba2_ops(kMamba, work, unfused(), kElementBytes);
  REQUIRE(summed.forward.exchanges.size() == 1);
  CHECK(summed.forward.exchanges[0].kind == CollectiveKind::kAllReduce);
  CHECK(summed.forward.exchanges[0].bytes == 1024 * 1024 * 2);
  CHECK(summed.input_grad.exchanges.size() == 1);
  work.sequence_parallel = true;
  const LayerOps divided = mamba2_ops(kMamba, work, unfused(), kElementBytes);
  REQUIRE(divided.forward.exchanges.size() == 2);
  CHECK(divided.forward.exchanges[0].kind == CollectiveKind::kAllGather);
  CHECK(divided.forward.exchanges[1].kind == CollectiveKind::kReduceScatter);
}

TEST_CASE("a framework keeps what the block's program keeps, and with full recomputation its input") {
  const TrainingSpec training{.global_batch = 2, .sequence = 512, .precision = Precision::kBf16};
  Layout layout{.microbatch = 2};
  const FrameworkFootprint whole = framework_footprint(kMamba, training, unfused(), layout);
  layout.recompute = Recompute::kFull;
  const FrameworkFootprint input = framework_footprint(kMamba, training, unfused(), layout);
  CHECK(whole.parameters == parameter_count(kMamba));
  CHECK(whole.rebuilt == 0);
  CHECK(input.kept == 2 * 512 * 1024 * 2);
  CHECK(input.kept + input.rebuilt == whole.kept);
}

}  // namespace plumb::test
