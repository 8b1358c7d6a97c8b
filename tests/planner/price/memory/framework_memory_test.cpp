#include "planner/price/memory/framework_memory.h"

#include <doctest/doctest.h>

#include "tests/planner/price/framework/gpt_layer.h"

namespace plumb::test {
namespace {

constexpr double kS = 2048, kB = 4, kH = 1024, kA = 16;

const TrainingSpec kLongTraining{.global_batch = 4, .sequence = 2048};

StageMemory memory_of(Layout layout, const StackSpec& stack, int layers = 1) {
  layout.microbatch = 4;
  return framework_memory(std::vector<Layer>(static_cast<std::size_t>(layers), Layer(kGpt)), kLongTraining, stack,
                          layout, {});
}

}  // namespace

TEST_CASE("activations are those of Korthikanti et al. 2022, table 2") {
  const double sbh = kS * kB * kH;
  const double scores = 5 * kA * kS / kH;
  const auto activations = [](const Layout& layout) {
    const StageMemory memory = memory_of(layout, unfused());
    return static_cast<double>(memory.forward_bytes);
  };
  CHECK(activations({}) == sbh * (34 + scores));
  CHECK(activations({.tensor = 8}) == sbh * (10 + 24.0 / 8 + scores / 8));
  CHECK(activations({.tensor = 8, .sequence_parallel = true}) == sbh / 8 * (34 + scores));
  CHECK(activations({.tensor = 8, .sequence_parallel = true, .recompute = Recompute::kSelective}) == sbh / 8 * 34);
  CHECK(activations({.tensor = 8, .recompute = Recompute::kFull}) == 2 * sbh);
}

TEST_CASE("what is recomputed stands once, or for all layers where the backward is split") {
  const StackSpec stack = unfused();
  const std::vector<Layer> layers(3, Layer(kGpt));
  const Layout layout{.microbatch = 4, .recompute = Recompute::kFull};
  const StageMemory whole = framework_memory(layers, kLongTraining, stack, layout, {});
  const StageMemory split = framework_memory(layers, kLongTraining, stack, layout, {.split = true});
  CHECK(split.recompute_bytes == 3 * whole.recompute_bytes);
}

TEST_CASE("of an unfused layer's activations I frees all but the 32 s b h that W needs") {
  const std::vector<Layer> layers(3, Layer(kGpt));
  const auto memory = [&](Recompute recompute, bool split) {
    return framework_memory(layers, kLongTraining, unfused(), {.microbatch = 4, .recompute = recompute},
                            {.split = split});
  };
  const double sbh = kS * kB * kH;
  CHECK(static_cast<double>(memory(Recompute::kNone, true).released_at_input_grad_bytes) ==
        3 * sbh * (34 + 5 * kA * kS / kH - 32));
  CHECK(memory(Recompute::kNone, false).released_at_input_grad_bytes == 0);
  CHECK(memory(Recompute::kFull, true).released_at_input_grad_bytes == 0);
}

TEST_CASE("a buffer of scores stands beside everything, once for all layers") {
  StackSpec stack = unfused();
  const StageMemory without = memory_of({}, stack, 2);
  stack.score_buffer = true;
  const StageMemory with = memory_of({}, stack, 2);
  const auto scores = static_cast<std::int64_t>(2 * kB * kA * kS * kS);
  CHECK(with.forward_workspace_bytes - without.forward_workspace_bytes == scores);
  CHECK(with.backward_workspace_bytes - without.backward_workspace_bytes == scores);
}

TEST_CASE("model state is 18 bytes a parameter, sharded by ZeRO stage") {
  const std::int64_t parameters = parameter_count(kGpt);
  const auto state = [&](int zero) {
    const StageMemory memory = memory_of({.data = 4, .zero = zero}, unfused());
    return std::tuple(memory.parameter_bytes, memory.gradient_bytes, memory.optimizer_bytes);
  };
  CHECK(state(0) == std::tuple(2 * parameters, 4 * parameters, 12 * parameters));
  CHECK(state(1) == std::tuple(2 * parameters, 4 * parameters, 3 * parameters));
  CHECK(state(2) == std::tuple(2 * parameters, parameters, 3 * parameters));
  CHECK(state(3) == std::tuple(parameters / 2, parameters, 3 * parameters));
}

TEST_CASE("context parallelism divides activations and shards with data parallelism") {
  const StackSpec stack{.name = "fused"};
  const StageMemory whole = memory_of({}, stack);
  const StageMemory half = memory_of({.context = 2, .zero = 1}, stack);
  CHECK(half.forward_bytes == whole.forward_bytes / 2);
  CHECK(half.optimizer_bytes == whole.optimizer_bytes / 2);
}

TEST_CASE("routed experts are divided by expert parallelism and sharded over their own replicas") {
  TransformerLayer layer = kGpt;
  layer.experts = 8;
  layer.experts_per_token = 2;
  layer.expert_ffn = 1024;
  const std::vector<Layer> layers{Layer(layer)};
  const StackSpec stack{.name = "fused"};
  const auto memory = [&](const Layout& layout) { return framework_memory(layers, kLongTraining, stack, layout, {}); };
  const std::int64_t experts = expert_parameter_count(layer);
  const std::int64_t rest = parameter_count(layer) - experts;
  CHECK(memory({.data = 4, .expert = 4}).parameter_bytes == 2 * (rest + experts / 4));
  CHECK(memory({.data = 4, .expert = 4, .zero = 1}).optimizer_bytes == 12 * (rest / 4 + experts / 4));
  CHECK(memory({.data = 4, .expert = 2, .zero = 1}).optimizer_bytes == 12 * (rest / 4 + experts / 2 / 2));
  CHECK(memory({.data = 8, .expert = 2, .zero = 1, .shard = 4}).optimizer_bytes == 12 * (rest / 4 + experts / 2 / 2));
}

TEST_CASE("per-operation checkpoints keep a layer's input, every second product and attention's result") {
  TransformerLayer layer = kLlama;
  const StackSpec stack{.name = "titan", .selective = SelectiveKind::kAlternateProducts};
  const Layout layout{.microbatch = 4, .recompute = Recompute::kSelective};
  const auto kept = [&](const Layout& by) {
    return framework_memory({Layer(layer)}, kLongTraining, stack, by, {}).forward_bytes;
  };
  // The elements of a token are: input 1024, queries 1024, values 256, attention 1024, gate 3072, down 1024. A head has
  // 4 bytes of log-sum-exp.
  CHECK(kept(layout) == 4 * 2048 * (2 * (1024 + 1024 + 256 + 1024 + 3072 + 1024) + 16 * 4));
  // Each of two tensor ranks holds half of the divided tensors, the whole down product and two reduced residuals.
  Layout halves = layout;
  halves.tensor = 2;
  halves.sequence_parallel = true;
  CHECK(kept(halves) == 4 * 2048 * (2 * (512 + 2 * 512 + 512 + 128 + 512 + 1536 + 1024) + 8 * 4));
  const auto everything = [&](Recompute recompute) {
    const StageMemory memory =
        framework_memory({Layer(layer)}, kLongTraining, stack, {.microbatch = 4, .recompute = recompute}, {});
    return memory.forward_bytes + memory.recompute_bytes;
  };
  CHECK(everything(Recompute::kSelective) == everything(Recompute::kNone));
}

TEST_CASE("a weighted activation that is not fused is kept beside its product with the router's weights") {
  // NVIDIA/Megatron-LM megatron/core/transformer/moe/experts.py, TEGroupedMLP.forward without bias_activation_fusion.
  TransformerLayer layer = kGpt;
  layer.experts = 8;
  layer.experts_per_token = 2;
  layer.expert_ffn = 512;
  StackSpec stack{.name = "core", .weighted_activations = true};
  const auto kept = [&] {
    return framework_memory({Layer(layer)}, kLongTraining, stack, {.microbatch = 4}, {}).forward_bytes;
  };
  const std::int64_t copies = 2 * 4 * 2048;
  const std::int64_t fused = kept();
  stack.fused_activation = false;
  CHECK(kept() - fused == copies * 512 * 2);
  stack.weighted_activations = false;  // the combination keeps what it weighs, the activation nothing more
  CHECK(kept() - fused == copies * 1024 * 2);
  layer.mlp = MlpKind::kSwiglu;  // the gate's own result is kept too, where it is a separate kernel
  const std::int64_t apart = kept();
  stack.fused_activation = true;
  CHECK(apart - kept() == copies * 512 * 2);
}

TEST_CASE("under fp8 products keep one byte of each element of their inputs") {
  // NVIDIA/TransformerEngine pytorch/module/linear.py, layernorm_linear.py: the quantized input is saved.
  TrainingSpec training = kLongTraining;
  training.precision = Precision::kFp8;
  StackSpec stack{.name = "narrow"};
  const auto kept = [&] {
    return framework_memory({Layer(kLlama)}, training, stack, {.microbatch = 4}, {}).forward_bytes;
  };
  const std::int64_t wide = kept();
  stack.fp8_saved = true;
  // Both norms' results and the down projection's input are halved; attention keeps its own result besides.
  CHECK(wide - kept() == 4 * 2048 * (2 * 1024 + 3072 - 1024));
  training.precision = Precision::kNvfp4;  // half a byte, and a byte of scale for 16 elements
  CHECK(wide - kept() == 4 * 2048 * ((2 * 1024 + 3072) * 23 - 1024 * 9) / 16);
  training.precision = Precision::kBf16;
  CHECK(kept() == wide);
}

TEST_CASE("norms and experts' activations are rebuilt, a copied context and what waits in host memory is counted") {
  TransformerLayer layer = kGpt;
  layer.experts = 8;
  layer.experts_per_token = 2;
  layer.expert_ffn = 512;
  StackSpec stack{.name = "core", .selective = SelectiveKind::kNormsAndActivations};
  const auto memory = [&](Recompute recompute) {
    return framework_memory(std::vector<Layer>(2, Layer(layer)), kLongTraining, stack,
                            {.microbatch = 4, .recompute = recompute}, {});
  };
  const std::int64_t all = memory(Recompute::kNone).forward_bytes;
  const std::int64_t rebuilt = 4 * 2048 * (2 * 1024 + 2 * 512) * 2;  // of a layer
  CHECK(all - memory(Recompute::kSelective).forward_bytes == 2 * rebuilt);
  CHECK(memory(Recompute::kSelective).recompute_bytes == rebuilt);
  stack.copied_context = true;
  CHECK(memory(Recompute::kNone).forward_bytes - all == 2 * 4 * 2048 * 1024 * 2);
  stack.copied_context = false;
  stack.offloaded_share = 0.25;
  CHECK(memory(Recompute::kNone).forward_bytes == all - all / 4);
  CHECK(memory(Recompute::kNone).recompute_bytes == all / 8);  // one layer's comes back
}

TEST_CASE("sharded masters are the only weights between gathers, and tables stay gathered where the stack says so") {
  const std::vector<Layer> layers{EmbeddingLayer{.vocab = 1000, .hidden = 1024}, Layer(kLlama), Layer(kLlama),
                                  HeadLayer{.vocab = 1000, .hidden = 1024}};
  StackSpec stack{.name = "titan"};
  const Layout layout{.data = 4, .zero = 3, .microbatch = 4};
  const auto memory = [&] { return framework_memory(layers, kLongTraining, stack, layout, {}); };
  CHECK(memory().parameter_bytes > 0);
  stack.sharded_masters = true;
  CHECK(memory().parameter_bytes == 0);
  stack.tables_stay_gathered = true;
  const std::int64_t tables = parameter_count(layers.front()) + parameter_count(layers.back());
  CHECK(memory().unsharded_bytes == 2 * (tables + 2 * parameter_count(layers[1])));
}

TEST_CASE("what the optimizer holds for a step is divided as its state is") {
  StackSpec stack{.name = "fused"};
  const auto optimizer = [&](int zero) { return memory_of({.data = 4, .zero = zero}, stack).optimizer_bytes; };
  const std::int64_t whole = optimizer(0), shard = optimizer(1);
  stack.step_bytes = 6;
  CHECK(optimizer(0) - whole == 6 * parameter_count(kGpt));
  CHECK(optimizer(1) - shard == 6 * parameter_count(kGpt) / 4);
}

TEST_CASE("the norm of the largest tensor is taken before a step's copies, in the room that these get") {
  // deepspeed/runtime/zero/stage_1_and_2.py has g.data.double() of one gradient, then the partition flat in 16 bits and
  // in fp32, beside the buffer in which replicas have reduced.
  StackSpec stack{.name = "fused"};
  const auto optimizer = [&](int data) { return memory_of({.data = data, .zero = 1}, stack).optimizer_bytes; };
  const std::int64_t whole = optimizer(1), shard = optimizer(1 << 20);
  stack.step_bytes = 2;
  stack.norm_bytes = 10;
  stack.bucket_mib = 3;
  const std::int64_t up = 4 * 1024 * 1024, stepped = parameter_count(kGpt);
  CHECK(optimizer(1) - whole == std::max(10 * up, 2 * stepped) + 3 * 1048576);
  stack.step_bytes = 8;
  CHECK(optimizer(1) - whole == 8 * stepped + 3 * 1048576);
  CHECK(memory_of({.zero = 0}, stack).optimizer_bytes - whole == 8 * stepped);  // without ZeRO's bucket and norm
  // A rank steps and measures its share of a tensor that many replicas divide.
  CHECK(optimizer(1 << 20) - shard == 10 * ((stepped + (1 << 20) - 1) >> 20) + 3 * 1048576);
}

TEST_CASE("gradients as computed stay beside those that add up, and masters of all parameters where the stack has so") {
  // deepspeed/runtime/bf16_optimizer.py (2022) holds param.grad beside fp32_groups_gradients_flat, and
  // fp32_groups_flat.
  StackSpec stack{.name = "fused"};
  const auto memory = [&](int zero) { return memory_of({.data = 4, .zero = zero}, stack); };
  const StageMemory none = memory(0), one = memory(1);
  const std::int64_t parameters = parameter_count(kGpt);
  stack.copied_gradient_bytes = 2;
  stack.replicated_masters = true;
  CHECK(memory(1).gradient_bytes - one.gradient_bytes == 2 * parameters);
  CHECK(memory(0).optimizer_bytes == none.optimizer_bytes);
  CHECK(memory(1).optimizer_bytes - one.optimizer_bytes == 4 * parameters - 4 * parameters / 4);
}

TEST_CASE("FSDP adds micro-batches to whole gradients where it reduces behind the last of a step only") {
  // torch/distributed/fsdp/_fully_shard/_fsdp_param.py: unsharded_accumulated_grad has the precision of the reduction.
  TrainingSpec training = kLongTraining;
  training.gradient_precision = Precision::kBf16;
  StackSpec stack{.name = "fused", .gradient_bytes = 4};
  const auto gradients = [&](std::int64_t batch, Layout layout) {
    training.global_batch = batch;
    layout.microbatch = 4;
    return framework_memory({Layer(kGpt)}, training, stack, layout, {}).gradient_bytes;
  };
  const std::int64_t parameters = parameter_count(kGpt);
  const Layout sharded{.data = 4, .zero = 3};
  const std::int64_t shard = gradients(32, sharded);
  CHECK(shard == 2 * ((parameters + 3) / 4));
  stack.whole_gradients = true;
  CHECK(gradients(32, sharded) == 4 * parameters);
  CHECK(gradients(16, sharded) == shard);  // one micro-batch
  CHECK(gradients(32, {.data = 4, .zero = 1}) == 2 * parameters);
}

TEST_CASE("an optimizer's state may be smaller than the training's, and the loss may see all logits") {
  const std::vector<Layer> layers{Layer(kGpt), HeadLayer{.vocab = 1024, .hidden = 1024}};
  StackSpec stack{.name = "fused", .logit_bytes = 8};
  const auto memory = [&] {
    return framework_memory(layers, kLongTraining, stack, {.tensor = 4, .microbatch = 4}, {});
  };
  const StageMemory divided = memory();
  stack.gathered_logits = true;
  stack.state_bytes = 4;
  CHECK(memory().forward_workspace_bytes - divided.forward_workspace_bytes == 3 * 8 * 4 * 2048 * 256);
  CHECK(memory().optimizer_bytes * 3 == divided.optimizer_bytes);  // the optimizer has 12 bytes a parameter
}

TEST_CASE("an embedding keeps what follows it, and a pipeline that sends shares of an output keeps its share") {
  const Layer table = EmbeddingLayer{.vocab = 1 << 10, .hidden = 1024};
  StackSpec stack{.name = "fused", .kept_outputs = true};
  const auto kept = [&](int tensor) {
    const Layout layout{.tensor = tensor, .pipeline = 2, .microbatch = 4};
    return framework_memory({table, Layer(kGpt)}, kLongTraining, stack, layout, {}).forward_bytes;
  };
  const std::int64_t stream = 2 * 4 * 2048 * 1024, whole = kept(1), divided = kept(4);
  stack.embedding_outputs = 2;
  CHECK(kept(1) - whole == 2 * stream);
  stack.embedding_outputs = 0;
  stack.kept_outputs = false;
  CHECK(whole - kept(1) == stream);
  CHECK(divided - kept(4) == stream / 4);
}

TEST_CASE("a backward holds the loss, or a layer and its gradient on its way, whichever is more") {
  const std::vector<Layer> layers{Layer(kLlama), HeadLayer{.vocab = 64, .hidden = 1024}};
  StackSpec stack{.name = "fused", .kept_weight_gradients = true};
  const Layout layout{.data = 4, .zero = 2, .microbatch = 4};
  const auto workspace = [&] {
    return framework_memory(layers, kLongTraining, stack, layout, {}).backward_workspace_bytes;
  };
  const std::int64_t gradient = 4 * parameter_count(layers.front());
  const std::int64_t tokens = 4 * 2048;
  CHECK(workspace() == gradient + 2 * tokens * (1024 + 2 * 3072));  // gradients of the output, and of gate and up
  const std::int64_t streams = 2 * 2 * tokens * 1024;               // before and behind the last norm
  stack.logit_bytes = 1000;
  CHECK(workspace() == streams + 1000 * tokens * 64);
  stack.cached_moments = true;
  CHECK(workspace() == streams + 1000 * tokens * 64 + 2 * tokens * (1024 + 2 * 3072));
  stack.cached_moments = false;
  stack.workspace_mib = 2;
  CHECK(workspace() == streams + 1000 * tokens * 64 + 2 * 1048576);
}

TEST_CASE("the table's gradient stands when its micro-batch's other tensors are gone") {
  const EmbeddingLayer table{.vocab = 1 << 20, .hidden = 1024};
  StackSpec stack{.name = "fused"};
  const Layout layout{.pipeline = 2, .microbatch = 4};
  const auto memory = [&] { return framework_memory({table, Layer(kLlama)}, kLongTraining, stack, layout, {}); };
  const std::int64_t layer_alone = memory().backward_workspace_bytes;
  stack.embedding_gradient_bytes = 2;
  CHECK(memory().backward_workspace_bytes == (std::int64_t{2048} << 20) - memory().forward_bytes);
  CHECK(memory().backward_workspace_bytes > layer_alone);
}

TEST_CASE(
    "tensors of weight gradients are kept for each shape, and outputs for each micro-batch, where the stack does") {
  StackSpec stack{.name = "fused"};
  const std::vector<Layer> layers(3, Layer(kLlama));
  const auto memory = [&] { return framework_memory(layers, kLongTraining, stack, {.microbatch = 4}, {}); };
  const StageMemory without = memory();
  stack.kept_weight_gradients = true;
  stack.kept_outputs = true;
  // The shapes are those of queries with keys and values, the projection, gate with up, and down.
  CHECK(memory().gradient_bytes - without.gradient_bytes == 2 * 1024 * (1536 + 1024 + 2 * 3072 + 3072));
  CHECK(memory().forward_bytes - without.forward_bytes == 2 * 4 * 2048 * 1024);
}

TEST_CASE("a pipeline's last stage keeps the logits of all micro-batches where the stack does") {
  // torch/distributed/pipelining/stage.py: output_chunks holds every micro-batch's output until the step ends.
  const std::vector<Layer> layers{Layer(kLlama), HeadLayer{.vocab = 1000, .hidden = 1024}};
  TrainingSpec training = kLongTraining;
  training.global_batch = 12;
  StackSpec stack{.name = "fused"};
  const auto memory = [&](int pipeline) {
    return framework_memory(layers, training, stack, {.pipeline = pipeline, .microbatch = 4}, {});
  };
  const StageMemory without = memory(2), alone = memory(1);
  stack.kept_logits = true;
  const std::int64_t logits = std::int64_t{3} * 4 * 2048 * 1000 * 2;
  CHECK(memory(2).forward_workspace_bytes - without.forward_workspace_bytes == logits);
  CHECK(memory(2).backward_workspace_bytes - without.backward_workspace_bytes == logits);
  CHECK(memory(2).forward_bytes == without.forward_bytes);
  CHECK(memory(1).backward_workspace_bytes == alone.backward_workspace_bytes);
}

TEST_CASE("the head holds what the stack says for each logit") {
  const std::vector<Layer> layers{HeadLayer{.vocab = 1000, .hidden = 1024}};
  StackSpec stack{.name = "fused", .vocab_multiple = 128};
  const Layout layout{.tensor = 2, .microbatch = 4};
  const auto workspace = [&] {
    return framework_memory(layers, kLongTraining, stack, layout, {}).backward_workspace_bytes;
  };
  // The gradients are those of the logits, of the table, of its input, and of the last norm: 1000 rows are padded to
  // 1024.
  const std::int64_t logits = 2048 * 4 * 1024 / 2, stream = 2048 * 4 * 1024;
  CHECK(workspace() == 2 * (logits + 512 * 1024 + 3 * stream));
  stack.logit_bytes = 10;
  CHECK(workspace() == 10 * logits + 2 * 2 * stream);
}

TEST_CASE("norms of queries and keys keep their inputs, and the deviation of each row") {
  TransformerLayer layer = kLlama;
  const auto kept = [&](QueryKeyNorms norms, int tensor = 1) {
    layer.query_key_norms = norms;
    return framework_memory({Layer(layer)}, kLongTraining, {.name = "fused"}, {.tensor = tensor, .microbatch = 4}, {})
        .forward_bytes;
  };
  const auto tokens = static_cast<std::int64_t>(kS * kB);
  const std::int64_t inputs = 2 * tokens * (16 + 4) * 64;
  CHECK(kept(QueryKeyNorms::kEachHead) - kept(QueryKeyNorms::kNone) == inputs + 4 * tokens * (16 + 4));
  CHECK(kept(QueryKeyNorms::kAllHeads) - kept(QueryKeyNorms::kNone) == inputs + 4 * tokens * 2);
  CHECK(kept(QueryKeyNorms::kEachHead, 4) - kept(QueryKeyNorms::kNone, 4) == (inputs + 4 * tokens * (16 + 4)) / 4);
}

}  // namespace plumb::test
