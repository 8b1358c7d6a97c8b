#include "planner/price/framework/transformer_ops.h"

#include <algorithm>
#include <string_view>

#include <doctest/doctest.h>

#include "tests/planner/price/framework/gpt_layer.h"

namespace plumb::test {
namespace {

const LayerWork kGptWork{.microbatch = 2, .sequence = 512};
constexpr double kGptTokens = 1024;

double flops(const PassOps& pass) {
  double sum = 0;
  for (const DeviceKernel& kernel : pass.kernels) {
    sum += kernel.flops + 2 * kernel.shape.m * kernel.shape.n * kernel.shape.k * kernel.shape.count *
                              (kernel.kind == DeviceKernel::Kind::kGemm ? 1 : 0);
  }
  return sum;
}

double traffic(const PassOps& pass) {
  double sum = 0;
  for (const DeviceKernel& kernel : pass.kernels) {
    if (kernel.kind == DeviceKernel::Kind::kTraffic) sum += kernel.bytes;
  }
  return sum;
}

double exchanged(const PassOps& pass, Group group, CollectiveKind kind) {
  double sum = 0;
  for (const KernelExchange& exchange : pass.exchanges) {
    if (exchange.group == group && exchange.kind == kind) sum += static_cast<double>(exchange.bytes) * exchange.count;
  }
  return sum;
}

}  // namespace

TEST_CASE("a layer's products are 24 T h^2 (1 + s / 6h) FLOPs forward and twice that backward") {
  const LayerOps ops = transformer_ops(kGpt, kGptWork, unfused(), kElementBytes);
  const double forward = 24 * kGptTokens * 1024 * 1024 * (1 + 512 / (6 * 1024.0));  // Narayanan et al. 2021, appendix
  CHECK(flops(ops.forward) == doctest::Approx(forward));
  CHECK(flops(ops.input_grad) + flops(ops.weight_grad) == doctest::Approx(2 * forward));
  CHECK(flops(ops.rebuild_full) == doctest::Approx(forward));
  CHECK(flops(ops.rebuild_selective) == doctest::Approx(4 * kGptTokens * 512 * 1024));
}

TEST_CASE("fused attention computes the causal half, its backward two and a half times as much") {
  StackSpec stack = unfused();
  const double square = flops(transformer_ops(kGpt, kGptWork, stack, kElementBytes).rebuild_selective);
  stack.attention = AttentionKernel::kFlash2;
  stack.causal_skipped = true;
  const LayerOps ops = transformer_ops(kGpt, kGptWork, stack, kElementBytes);
  CHECK(flops(ops.rebuild_selective) == doctest::Approx(square * 513 / 1024));
  const LayerOps whole = transformer_ops(kGpt, kGptWork, unfused(), kElementBytes);
  CHECK(flops(ops.input_grad) ==
        doctest::Approx(flops(whole.input_grad) - 2 * square + 2.5 * flops(ops.rebuild_selective)));
}

TEST_CASE("per-operation checkpoints rebuild every second product and gather their inputs again") {
  const StackSpec stack{.name = "titan", .selective = SelectiveKind::kAlternateProducts};
  const auto rebuilt = [&](const TransformerLayer& layer, const LayerWork& work) {
    return transformer_ops(layer, work, stack, kElementBytes).rebuild_selective;
  };
  // Keys [1024, 256], projection [1024, 1024] and the second up projection [1024, 3072] are rebuilt; attention is kept.
  CHECK(flops(rebuilt(kLlama, kGptWork)) == doctest::Approx(2 * kGptTokens * 1024 * (256 + 1024 + 3072)));
  // An MLP without a gate keeps its up projection; its down projection comes last, and nothing needs it again.
  CHECK(flops(rebuilt(kGpt, kGptWork)) == doctest::Approx(2 * kGptTokens * 1024 * (1024 + 1024)));
  LayerWork work = kGptWork;
  work.tensor_parallel = 2;
  work.sequence_parallel = true;
  CHECK(exchanged(rebuilt(kLlama, work), Group::kTensor, CollectiveKind::kAllGather) == 2 * kGptTokens * 1024 * 2);
  CHECK(exchanged(rebuilt(kLlama, work), Group::kTensor, CollectiveKind::kReduceScatter) == 0);
}

TEST_CASE("norms and experts' activations are rebuilt without a product") {
  const StackSpec stack{.name = "core", .selective = SelectiveKind::kNormsAndActivations};
  TransformerLayer layer = kLlama;
  layer.experts = 8;
  layer.experts_per_token = 2;
  layer.expert_ffn = 512;
  const PassOps rebuilt = transformer_ops(layer, kGptWork, stack, kElementBytes).rebuild_selective;
  CHECK(flops(rebuilt) == 0);
  double bytes = 0;
  for (const DeviceKernel& kernel : rebuilt.kernels) bytes += kernel.bytes;
  CHECK(bytes ==
        doctest::Approx(kGptTokens * 2 * (2 * 2 * 1024 + 2 * 3 * 512)));  // twice in and out; two gates, result
}

TEST_CASE("repeated keys and values are exchanged for every query head") {
  StackSpec stack{.name = "titan", .context = ContextKind::kAllGather};
  LayerWork work = kGptWork;
  work.context_parallel = 4;
  const auto gathered = [&] {
    return exchanged(transformer_ops(kLlama, work, stack, kElementBytes).forward, Group::kContext,
                     CollectiveKind::kAllGather);
  };
  CHECK(gathered() == kGptTokens * 2 * 256 * 2);
  stack.repeated_heads = true;
  CHECK(gathered() == kGptTokens * 2 * 1024 * 2);
}

TEST_CASE("memory-bound kernels move what fidelity needs them to move") {
  // Norm 2 E, softmax 2 A, dropout 2.5 A, copy 2 E, branch end 3.5 E, norm 2 E, activation 2 * 4 E, branch end 3.5 E.
  const double e = kGptTokens * 1024 * 2;
  const double a = 2.0 * 16 * 512 * 512 * 2;
  const LayerOps ops = transformer_ops(kGpt, kGptWork, unfused(), kElementBytes);
  CHECK(traffic(ops.forward) == doctest::Approx((2 + 2 + 3.5 + 2 + 8 + 3.5) * e + 4.5 * a));
}

TEST_CASE("a norm in fp32 between casts moves five times the bytes forward, and three times backward") {
  const double e = kGptTokens * 1024 * 2;
  StackSpec stack = unfused();
  stack.fused_norm = false;
  const LayerOps plain = transformer_ops(kGpt, kGptWork, stack, kElementBytes);
  stack.fp32_norms = true;
  const LayerOps cast = transformer_ops(kGpt, kGptWork, stack, kElementBytes);
  CHECK(traffic(cast.forward) - traffic(plain.forward) == doctest::Approx(2 * (10 - 2) * e));
  CHECK(traffic(cast.input_grad) - traffic(plain.input_grad) == doctest::Approx(2 * (16 - 5) * e));
}

TEST_CASE("a fused softmax that does not take the rows falls back to kernels of its own") {
  StackSpec stack = unfused();
  stack.fused_softmax_rows = 4;
  LayerWork work{.microbatch = 1, .sequence = 512, .tensor_parallel = 8};  // 1 x 16 / 8: two rows
  const double a = 2.0 * 512 * 512 * 2;
  const double fallen = traffic(transformer_ops(kGpt, work, stack, kElementBytes).forward);
  stack.fused_softmax_rows = 0;
  CHECK(fallen - traffic(transformer_ops(kGpt, work, stack, kElementBytes).forward) == doctest::Approx(6 * a));
  work.microbatch = 2;  // four rows
  stack.fused_softmax_rows = 4;
  const double fits = traffic(transformer_ops(kGpt, work, stack, kElementBytes).forward);
  stack.fused_softmax_rows = 0;
  CHECK(fits == doctest::Approx(traffic(transformer_ops(kGpt, work, stack, kElementBytes).forward)));
}

TEST_CASE("tensor parallelism sums twice each way, sequence parallelism gathers and scatters instead") {
  LayerWork work = kGptWork;
  work.tensor_parallel = 4;
  const double e = kGptTokens * 1024 * 2;
  LayerOps ops = transformer_ops(kGpt, work, unfused(), kElementBytes);
  CHECK(exchanged(ops.forward, Group::kTensor, CollectiveKind::kAllReduce) == 2 * e);
  CHECK(exchanged(ops.input_grad, Group::kTensor, CollectiveKind::kAllReduce) == 2 * e);
  CHECK(exchanged(ops.weight_grad, Group::kTensor, CollectiveKind::kAllGather) == 0);
  work.sequence_parallel = true;
  ops = transformer_ops(kGpt, work, unfused(), kElementBytes);
  CHECK(exchanged(ops.forward, Group::kTensor, CollectiveKind::kAllReduce) == 0);
  for (const PassOps* pass : {&ops.forward, &ops.input_grad}) {
    CHECK(exchanged(*pass, Group::kTensor, CollectiveKind::kAllGather) == 2 * e);
    CHECK(exchanged(*pass, Group::kTensor, CollectiveKind::kReduceScatter) == 2 * e);
  }
  CHECK(exchanged(ops.weight_grad, Group::kTensor, CollectiveKind::kAllGather) == 2 * e);
}

TEST_CASE("context parallelism divides tokens and work, and moves keys and values") {
  StackSpec stack = unfused();
  stack.attention = AttentionKernel::kFlash2;
  LayerWork work = kGptWork;
  work.context_parallel = 2;
  const LayerOps whole = transformer_ops(kGpt, kGptWork, stack, kElementBytes);
  const LayerOps half = transformer_ops(kGpt, work, stack, kElementBytes);
  CHECK(flops(half.forward) == doctest::Approx(flops(whole.forward) / 2));
  const double keys_and_values = kGptTokens * 2 * 1024 * 2;
  CHECK(exchanged(half.forward, Group::kContext, CollectiveKind::kAllGather) == keys_and_values);
  CHECK(exchanged(half.input_grad, Group::kContext, CollectiveKind::kReduceScatter) == keys_and_values);
  stack.context = ContextKind::kUlysses;
  const LayerOps heads = transformer_ops(kGpt, work, stack, kElementBytes);
  CHECK(exchanged(heads.forward, Group::kContext, CollectiveKind::kAllToAll) == kGptTokens / 2 * 4 * 1024 * 2);
}

TEST_CASE("a ring computes attention of short blocks, and sums their results and gradients") {
  StackSpec stack = unfused();
  stack.attention = AttentionKernel::kFlash2;
  stack.causal_skipped = true;
  LayerWork work = kGptWork;
  work.context_parallel = 4;
  const auto kernel = [](const PassOps& pass, std::string_view name) {
    const auto found = std::ranges::find(pass.kernels, name, &DeviceKernel::name);
    return found == pass.kernels.end() ? DeviceKernel{} : *found;
  };
  const LayerOps ring = transformer_ops(kGpt, work, stack, kElementBytes);
  // The own block of 128 tokens is causal. Of the three others half have 64 keys for each query, and half 128, which
  // are as many as causal attention of 128 and 256 tokens has in the mean. They compute as much, in 1 / e(s) of the time.
  const double reciprocals = 1.0 / 128 + 3 * (1.0 / 128 + 1.0 / 256) / 2;
  CHECK(kernel(ring.forward, "attention").sequence == doctest::Approx(4 / reciprocals));
  // The first block's tensors are copied. Of the next three half are whole and half are halves: read twice, written.
  const double crossings = 2 + 3 * 3 * .75, element = 2.0 * kGptTokens / 4 * 1024;
  CHECK(kernel(ring.forward, "blocks weighed").bytes == doctest::Approx(crossings * element));
  CHECK(kernel(ring.input_grad, "gradients of blocks summed").bytes == doctest::Approx(crossings * 3 * element));
  stack.context = ContextKind::kAllGather;
  const LayerOps gathered = transformer_ops(kGpt, work, stack, kElementBytes);
  CHECK(kernel(gathered.forward, "attention").sequence == 512);
  CHECK(kernel(gathered.forward, "blocks weighed").bytes == 0);
}

TEST_CASE("experts compute what the router sends them, and it crosses twice each way") {
  TransformerLayer layer = kGpt;
  layer.mlp = MlpKind::kSwiglu;
  layer.linear_bias = false;
  layer.experts = 8;
  layer.experts_per_token = 2;
  layer.expert_ffn = 2048;
  LayerWork work = kGptWork;
  work.experts.parallel = 4;
  const LayerOps ops = transformer_ops(layer, work, unfused(), kElementBytes);
  TransformerLayer dense = layer;
  dense.experts = 0;
  dense.ffn = 2 * 2048;  // as much as two experts
  const double router = 2 * kGptTokens * 8 * 1024;
  CHECK(flops(ops.forward) ==
        doctest::Approx(flops(transformer_ops(dense, work, unfused(), kElementBytes).forward) + router));
  CHECK(exchanged(ops.forward, Group::kExpert, CollectiveKind::kAllToAll) == 2 * 2 * kGptTokens * 1024 * 2);
  CHECK(exchanged(ops.input_grad, Group::kExpert, CollectiveKind::kAllToAll) == 2 * 2 * kGptTokens * 1024 * 2);
}

TEST_CASE("recomputation that stops early leaves out the last product") {
  StackSpec stack = unfused();
  const double whole = flops(transformer_ops(kGpt, kGptWork, stack, kElementBytes).rebuild_full);
  stack.early_stop = true;
  CHECK(flops(transformer_ops(kGpt, kGptWork, stack, kElementBytes).rebuild_full) ==
        doctest::Approx(whole - 2 * kGptTokens * 4096 * 1024));
  LayerWork work = kGptWork;
  work.tensor_parallel = 2;
  const LayerOps ops = transformer_ops(kGpt, work, stack, kElementBytes);
  const double e = kGptTokens * 1024 * 2;
  CHECK(exchanged(ops.forward, Group::kTensor, CollectiveKind::kAllReduce) == 2 * e);
  CHECK(exchanged(ops.rebuild_full, Group::kTensor, CollectiveKind::kAllReduce) ==
        e);  // the down product's is not there
}

TEST_CASE("what is quantized before it is gathered is half as much, and what is scattered is not") {
  LayerWork work = kGptWork;
  work.tensor_parallel = 4;
  work.sequence_parallel = true;
  ElementBytes narrow = kElementBytes;
  narrow.gathered = 1;
  const double e = kGptTokens * 1024 * 2;
  const LayerOps ops = transformer_ops(kGpt, work, unfused(), narrow);
  for (const PassOps* pass : {&ops.forward, &ops.input_grad}) {
    CHECK(exchanged(*pass, Group::kTensor, CollectiveKind::kAllGather) == e);
    CHECK(exchanged(*pass, Group::kTensor, CollectiveKind::kReduceScatter) == 2 * e);
  }
  CHECK(exchanged(ops.weight_grad, Group::kTensor, CollectiveKind::kAllGather) == e);
}

TEST_CASE("inputs that stay gathered are not gathered for their weight gradients") {
  LayerWork work = kGptWork;
  work.tensor_parallel = 2;
  work.sequence_parallel = true;
  StackSpec stack = unfused();
  const double again = exchanged(transformer_ops(kGpt, work, stack, kElementBytes).weight_grad, Group::kTensor,
                                 CollectiveKind::kAllGather);
  CHECK(again == 2 * kGptTokens * 1024 * 2);
  stack.regathered_inputs = false;
  CHECK(transformer_ops(kGpt, work, stack, kElementBytes).weight_grad.exchanges.empty());
}

TEST_CASE("sequences gathered along another dimension than the first are read and written once more") {
  LayerWork work = kGptWork;
  work.tensor_parallel = 2;
  work.sequence_parallel = true;
  StackSpec stack = unfused();
  const LayerOps without = transformer_ops(kGpt, work, stack, kElementBytes);
  stack.copied_collectives = true;
  const LayerOps with = transformer_ops(kGpt, work, stack, kElementBytes);
  const double stream = kGptTokens * 1024 * 2;
  // torch.distributed._functional_collectives has two gathers and two scatters each way, each with a torch.cat.
  CHECK(traffic(with.forward) - traffic(without.forward) == doctest::Approx(4 * 2 * stream));
  CHECK(traffic(with.input_grad) - traffic(without.input_grad) == doctest::Approx(4 * 2 * stream));
  work.sequence_parallel = false;
  CHECK(traffic(transformer_ops(kGpt, work, stack, kElementBytes).forward) ==
        doctest::Approx(traffic(transformer_ops(kGpt, work, unfused(), kElementBytes).forward)));
}

TEST_CASE("what is gathered in 16 bit is quantized whole by every rank, what was quantized before is not") {
  LayerWork work = kGptWork;
  work.tensor_parallel = 4;
  work.sequence_parallel = true;
  const auto quantized = [&](double gathered) {
    double bytes = 0;
    const ElementBytes element{.activation = 2, .gathered = gathered, .gradient = 4, .cast = 10};
    for (const DeviceKernel& kernel : transformer_ops(kGpt, work, unfused(), element).forward.kernels) {
      if (kernel.name == "cast") bytes += kernel.bytes;
    }
    return bytes;
  };
  CHECK(quantized(1) == doctest::Approx(10 * kGptTokens * (1024 + 4096) / 4));  // projection, down
  CHECK(quantized(2) - quantized(1) == doctest::Approx(10 * 2 * kGptTokens * 1024));
}

TEST_CASE("a kernel for each expert is as many launches, and a ring of attention as many as it has blocks and sums") {
  const auto launches = [](const PassOps& pass) {
    int sum = 0;
    for (const DeviceKernel& kernel : pass.kernels) sum += kernel.launches;
    return sum;
  };
  TransformerLayer layer = kGpt;
  layer.experts = 8;
  layer.experts_per_token = 2;
  layer.expert_ffn = 2048;
  StackSpec stack = unfused();
  LayerWork work = kGptWork;
  work.experts.parallel = 2;  // four experts a rank
  const LayerOps grouped = transformer_ops(layer, work, stack, kElementBytes);
  stack.expert_kernels = true;
  const LayerOps alone = transformer_ops(layer, work, stack, kElementBytes);
  for (const auto pass : {&LayerOps::forward, &LayerOps::input_grad, &LayerOps::weight_grad}) {
    CHECK(launches(alone.*pass) - launches(grouped.*pass) == 2 * 3);  // up and down, three more of each
    CHECK(flops(alone.*pass) == flops(grouped.*pass));
  }
  stack.attention = AttentionKernel::kFlash2;
  const int whole = launches(transformer_ops(kGpt, kGptWork, stack, kElementBytes).forward);
  work = kGptWork;
  work.context_parallel = 4;
  CHECK(launches(transformer_ops(kGpt, work, stack, kElementBytes).forward) - whole == 6);  // four blocks, three sums
}

TEST_CASE("norms of queries and keys are read and written, again in their backward, and have no product") {
  TransformerLayer layer = kLlama;
  const StackSpec stack{.name = "titan", .selective = SelectiveKind::kAlternateProducts};
  const auto ops = [&](QueryKeyNorms norms, const LayerWork& work = kGptWork) {
    layer.query_key_norms = norms;
    return transformer_ops(layer, work, stack, kElementBytes);
  };
  const LayerOps without = ops(QueryKeyNorms::kNone), with = ops(QueryKeyNorms::kEachHead);
  const double bytes = 2 * kGptTokens * (16 + 4) * 64;  // queries and keys
  CHECK(flops(with.forward) == flops(without.forward));
  CHECK(traffic(with.forward) == doctest::Approx(traffic(without.forward) + 2 * bytes));
  CHECK(traffic(with.input_grad) == doctest::Approx(traffic(without.input_grad) + 4 * bytes));
  CHECK(traffic(with.rebuild_selective) == doctest::Approx(traffic(without.rebuild_selective) + 2 * bytes));
  LayerWork work = kGptWork;
  work.tensor_parallel = 2;
  const auto summed = [&](QueryKeyNorms norms) {
    return exchanged(ops(norms, work).forward, Group::kTensor, CollectiveKind::kAllReduce);
  };
  CHECK(summed(QueryKeyNorms::kEachHead) == summed(QueryKeyNorms::kNone));
  CHECK(summed(QueryKeyNorms::kAllHeads) == summed(QueryKeyNorms::kNone) + 2 * 4 * kGptTokens);  // rows in fp32
}

}  // namespace plumb::test
