#include "planner/price/framework/state_mixer_ops.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "planner/price/framework/layer_ops.h"
#include "planner/price/memory/framework_memory.h"
#include "tests/planner/price/framework/gpt_layer.h"

namespace plumb::test {
namespace {

const TransformerLayer kMamba{.hidden = 1024,
                              .states = Mamba2Mixer{.heads = 32, .head_size = 64, .state_size = 128, .groups = 8}};

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
  const LayerOps ops = state_mixer_ops(kMamba, {.microbatch = 2, .sequence = 512}, unfused(), kElementBytes);
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
  const LayerOps summed = state_mixer_ops(kMamba, work, unfused(), kElementBytes);
  REQUIRE(summed.forward.exchanges.size() == 1);
  CHECK(summed.forward.exchanges[0].kind == CollectiveKind::kAllReduce);
  CHECK(summed.forward.exchanges[0].bytes == 1024 * 1024 * 2);
  CHECK(summed.input_grad.exchanges.size() == 1);
  work.sequence_parallel = true;
  const LayerOps divided = state_mixer_ops(kMamba, work, unfused(), kElementBytes);
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

TEST_CASE("a hybrid's block is its state mixer and its other parts, each with the products of its own") {
  TransformerLayer hybrid = kMamba;
  hybrid.ffn = 2816;
  TransformerLayer mlp = hybrid;
  mlp.states = {};
  const LayerWork work{.microbatch = 2, .sequence = 512, .tensor_parallel = 2};
  const LayerOps both = layer_ops(hybrid, work, unfused(), kElementBytes),
                 states = layer_ops(kMamba, work, unfused(), kElementBytes),
                 rest = layer_ops(mlp, work, unfused(), kElementBytes);
  for (const auto pass : {&LayerOps::forward, &LayerOps::input_grad, &LayerOps::weight_grad, &LayerOps::rebuild_full}) {
    CHECK(product_flops(both.*pass) == doctest::Approx(product_flops(states.*pass) + product_flops(rest.*pass)));
    CHECK((both.*pass).exchanges.size() == (states.*pass).exchanges.size() + (rest.*pass).exchanges.size());
  }
  CHECK(product_flops(rest.forward) == doctest::Approx(2.0 * 1024 * 1024 * 3 * 2816 / 2));
}

TEST_CASE("a framework keeps a hybrid's input once under full recomputation, and else what its parts keep") {
  TransformerLayer hybrid = kMamba;
  hybrid.ffn = 2816;
  TransformerLayer mlp = hybrid;
  mlp.states = {};
  const TrainingSpec training{.global_batch = 2, .sequence = 512, .precision = Precision::kBf16};
  Layout layout{.microbatch = 2};
  const auto kept = [&](const TransformerLayer& layer) {
    return framework_footprint(layer, training, unfused(), layout).kept;
  };
  CHECK(kept(hybrid) == kept(kMamba) + kept(mlp));
  layout.recompute = Recompute::kFull;
  CHECK(kept(hybrid) == 2 * 512 * 1024 * 2);
  CHECK(framework_footprint(hybrid, training, unfused(), layout).parameters == parameter_count(hybrid));
}

TEST_CASE("the delta rule runs at the rate of attention over its chunk, and Mamba's scan moves bytes") {
  TransformerLayer layer{.hidden = 1024,
                         .states = DeltaNetMixer{.key_heads = 8, .value_heads = 16, .key_size = 64, .value_size = 64}};
  const LayerWork work{.microbatch = 2, .sequence = 512, .tensor_parallel = 2};
  const LayerOps rule = layer_ops(layer, work, unfused(), kElementBytes);
  const DeviceKernel* states = states_of(rule.forward, DeviceKernel::Kind::kAttentionForward);
  REQUIRE(states != nullptr);
  CHECK(states->sequence == 64);
  layer.states = MambaMixer{.channels = 2048, .state_size = 16, .step_rank = 64};
  const LayerOps scan = layer_ops(layer, work, unfused(), kElementBytes);
  CHECK(states_of(scan.forward, DeviceKernel::Kind::kAttentionForward) == nullptr);
  CHECK(std::ranges::count(scan.forward.kernels, "selective_scan_forward", &DeviceKernel::name) == 1);
  CHECK(scan.forward.exchanges.size() == 3);  // the stream, B and C, and the low-rank steps
}

}  // namespace plumb::test
